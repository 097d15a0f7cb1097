#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pictures_test.sh BIN: a run's folder and its exported model, served and asked
# with the files of pictures. The network's weights are written down: a pure
# colour has the probability e / (e + 2) = 0.576117.
# shellcheck disable=SC2154 # variables of server.bash
set -euo pipefail

export PATH=$1:$PATH
# shellcheck source=/dev/null
. tests/serve/server.bash

# rounded FILTER EXPECTED: numbers of the answer to four places.
rounded() {
  local got
  got=$(jq -r "$1 | map(. * 10000 | round / 10000) | join(\" \")" body)
  [ "$got" = "$2" ] || fail "the answer is $got, not $2"
}

picture() { printf 'P6 1 1 255\n' >"$1" && printf '%b' "$2" >>"$1"; }
mkdir -p shots/blue shots/green shots/red
picture shots/red/1.ppm '\xff\x00\x00'
picture shots/green/1.ppm '\x00\xff\x00'
picture shots/blue/1.ppm '\x00\x00\xff'
fixed='weight_attr { initializer { assign { value: [0, 0, 1, 0, 1, 0, 1, 0, 0] } } }
  bias_attr { initializer { constant {} } }'
set='dataset_folder { root: "shots" } transform { to_tensor {} } batch_size: 3'
cat >colours.pbtxt <<EOF
model { input { name: "image" shape: [-1, 3, 1, 1] } layer { flatten {} }
  layer { linear { out_features: 3 $fixed } } layer { softmax {} } }
loss { cross_entropy { use_softmax: false } }
data { train { $set } eval { $set } }
optimizer { sgd { learning_rate: 1e-30 } } train { steps: 1 epochs: 1 }
EOF
pd-train -q -c colours.pbtxt --out colours >out.log 2>err.log || fail "colours"
pd-export -q -m colours -o exported >out.log 2>err.log || fail "pd-export"
red=$(base64 -w0 shots/red/1.ppm)
green=$(base64 -w0 shots/green/1.ppm)
cp shots/red/1.ppm red.ppm
cp shots/blue/1.ppm blue.ppm
rm -r shots

# Two files as elements of BYTES: a length of four bytes each, 14 here.
head='{"inputs":[{"name":"image","datatype":"BYTES","shape":[2],"parameters":{"binary_data_size":36}}]}'
{
  printf '%s' "$head"
  printf '\016\0\0\0'
  cat red.ppm
  printf '\016\0\0\0'
  cat blue.ppm
} >two.bin
[ "$(wc -c <red.ppm)" -eq 14 ] || fail "a picture of $(wc -c <red.ppm) bytes"

for model in colours exported.pdmodel; do
  start -m "$model"
  name=${model%.pdmodel}
  infer=$url/v2/models/$name/infer
  status 200 "$url/v2/models/$name"
  [ "$(jq -c '.inputs[0] | [.datatype, .parameters.pictures]' body)" = '["FP32",true]' ] ||
    fail "metadata: $(cat body)"
  status 200 "$url/v1/models/$name:predict" -d '{"instances":[{"b64":"'"$red"'"}]}'
  rounded '.predictions[0]' '0.2119 0.2119 0.5761'
  status 200 "$url/v1/models/$name:predict" \
    -d '{"instances":[{"image":{"b64":"'"$green"'"}},{"image":{"b64":"'"$red"'"}}]}'
  rounded '.predictions | flatten' '0.2119 0.5761 0.2119 0.2119 0.2119 0.5761'
  status 200 "$infer" -d '{"inputs":[{"name":"image","datatype":"BYTES","shape":[1,1],
    "data":[{"b64":"'"$green"'"}]}]}'
  rounded '.outputs[0].data' '0.2119 0.5761 0.2119'
  status 200 "$infer" --data-binary @two.bin -H "Inference-Header-Content-Length: ${#head}"
  rounded '.outputs[0].data' '0.2119 0.2119 0.5761 0.5761 0.2119 0.2119'
  # Numbers go on to be taken.
  status 200 "$infer" -d '{"inputs":[{"name":"image","datatype":"FP32","shape":[1,3,1,1],
    "data":[1,0,0]}]}'
  rounded '.outputs[0].data' '0.2119 0.2119 0.5761'

  # wrong WORDS BODY: 400, and the reason.
  wrong() {
    status 400 "$infer" -d "$2"
    jq -r .error body | grep -qF -- "$1" || fail "of $2: $(cat body)"
  }
  bytes='"name":"image","datatype":"BYTES"'
  wrong 'picture 0: ' "{\"inputs\":[{$bytes,\"shape\":[1],\"data\":[{\"b64\":\"YnJva2Vu\"}]}]}"
  wrong 'picture 0 is no {"b64"' "{\"inputs\":[{$bytes,\"shape\":[1],\"data\":[{\"b64\":\"?\"}]}]}"
  wrong 'picture 0 is no {"b64"' "{\"inputs\":[{$bytes,\"shape\":[1],\"data\":[7]}]}"
  wrong 'there are 1 pictures; the shape has 2' \
    "{\"inputs\":[{$bytes,\"shape\":[2],\"data\":[{\"b64\":\"$red\"}]}]}"
  wrong 'expected [n]' "{\"inputs\":[{$bytes,\"shape\":[1,3],\"data\":[{\"b64\":\"$red\"}]}]}"
  # The second length says more than there is.
  sed 's/\[2\]/[3]/' two.bin >three.bin
  status 400 "$infer" --data-binary @three.bin -H "Inference-Header-Content-Length: ${#head}"
  jq -r .error body | grep -qF 'there are 2 elements; the shape has 3' || fail "$(cat body)"
  head -c -1 two.bin | sed 's/:36/:35/' >short.bin
  status 400 "$infer" --data-binary @short.bin -H "Inference-Header-Content-Length: ${#head}"
  jq -r .error body | grep -qF 'element 1 has 14 bytes; 13 are left' || fail "$(cat body)"
  head -c $((${#head} + 20)) two.bin | sed 's/:36/:20/' >cut.bin
  status 400 "$infer" --data-binary @cut.bin -H "Inference-Header-Content-Length: ${#head}"
  jq -r .error body | grep -qF 'the length of element 1 takes 4 bytes; 2 are left' || fail "$(cat body)"
  stop
done

# Over gRPC, typed and raw; a message is a byte 0, its length in four, itself.
if [ -e "$1/../lib/libpd_grpc.so" ] && curl --version | grep -q HTTP2; then
  start -m colours --grpc 127.0.0.1:0
  grpc=$(sed -n 's/^and on grpc:/http:/p' out.log)
  # ask TEXT: the answer's text is left in body.
  ask() {
    protoc -I"${proto%/*}" --encode=inference.ModelInferRequest "$proto" <<<"$1" >message
    {
      printf '\0'
      printf '%b' "$(printf %08x "$(wc -c <message)" | sed 's/../\\x&/g')"
      cat message
    } >frame
    curl -s --http2-prior-knowledge -H 'Content-Type: application/grpc' -H 'TE: trailers' \
      -D trailers --data-binary @frame "$grpc/inference.GRPCInferenceService/ModelInfer" | tail -c +6 |
      protoc -I"${proto%/*}" --decode=inference.ModelInferResponse "$proto" >body
  }
  element='P6 1 1 255\n\377\000\000'
  for tensor in 'shape: [1] contents { bytes_contents: "'"$element"'" } }' \
    'shape: [1] } raw_input_contents: "\016\000\000\000'"$element"'"'; do
    ask 'model_name: "colours" inputs { name: "image" datatype: "BYTES" '"$tensor"
    if grep -q raw_output body; then
      [ "$(grep -c raw_output body)" -eq 1 ] || fail "$(cat body)"
    else
      [ "$(sed -n 's/^ *fp32_contents: \(0\.....\).*/\1/p' body | paste -sd' ')" = '0.2119 0.2119 0.5761' ] ||
        fail "over gRPC: $(cat body)"
    fi
  done
  ask 'model_name: "colours" inputs { name: "image" datatype: "BYTES" shape: [2]
    contents { bytes_contents: "x" } }'
  grep -qi '^grpc-status: 3' trailers || fail "a wrong count: $(cat trailers body)"
  stop
fi

# A model without such a job takes numbers alone.
start -m "$testdata/deploy/lenet.pdmodel"
status 400 "$url/v2/models/lenet/infer" \
  -d '{"inputs":[{"name":"x","datatype":"BYTES","shape":[1],"data":[{"b64":""}]}]}'
jq -r .error body | grep -qF "the datatype 'BYTES' is not known here" || fail "$(cat body)"
stop
