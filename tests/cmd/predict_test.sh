#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pd-eval --predict on rows, lines, pictures, arrays and streams. Networks have
# weights that are written down, so every answer follows from its softmax, its
# sum or its words by hand.
#   predict_test.sh BIN TESTDATA
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "predict_test: $*" >&2; exit 1; }
# same WHAT FILE: FILE holds exactly the lines of standard input.
same() { diff - "$2" >diff.out || fail "$1: $(cat diff.out)"; }
predict() { "$bin/pd-eval" --predict "$@" 2>err || fail "--predict $*: $(cat err)"; }
refused() {
  local message=$1
  shift
  if "$bin/pd-eval" --predict "$@" >/dev/null 2>err; then fail "taken: $*"; fi
  grep -qF -- "$message" err || fail "of $*: $(cat err)"
}
# The weights stay as the job writes them.
still='optimizer { sgd { learning_rate: 1e-30 } } train { steps: 1 epochs: 1 }'
fixed() { echo "weight_attr { initializer { assign { value: [$1] } } } bias_attr { initializer { constant {} } }"; }

# Rows: scores are the columns, so exp(ln 2), exp(ln 5) and 1 share 8.
ln2=0.6931471805599453
ln5=1.6094379124341003
printf 'x1,x2,kind\n1,2,ant\n2,1,"bee, or wasp"\n0,0,cow\n' >rows.csv
fields='field { name: "x" column: "*" } field { name: "kind" column: "kind" categories {} }'
cat >rows.pbtxt <<EOF
model { input { name: "x" shape: [-1, 2] }
  layer { name: "fc" linear { out_features: 3 $(fixed "1, 0, 0, 0, 1, 0") } } }
loss { label: "kind" cross_entropy {} }
data { train { csv { path: "rows.csv" $fields } batch_size: 3 }
  eval { csv { path: "rows.csv" $fields } batch_size: 2 } }
$still
EOF
"$bin/pd-train" -c rows.pbtxt --out rows >/dev/null 2>err || fail "rows: $(cat err)"
printf 'note,x2,x1\n7,%s,%s\n8,%s,%s\n9,0,0\n' $ln5 $ln2 $ln2 $ln5 >new.csv
predict -m rows new.csv --top 2 >out
same "rows" out <<'EOF'
line,class,probability,class_2,probability_2
2,"bee, or wasp",0.625,ant,0.25
3,ant,0.625,"bee, or wasp",0.25
4,ant,0.333333,"bee, or wasp",0.333333
EOF
predict -m rows - <new.csv >out2 --top 2
cmp out out2 || fail "standard input"
gzip -k new.csv
predict -m rows new.csv.gz --top 2 --out out3.csv
cmp out out3.csv || fail "compressed rows and a file"
predict -m rows new.csv new.csv.gz --format json -q >out
grep -qE '^\{"file":"new.csv","line":2,"class":"bee, or wasp","number":1,"probability":0\.62(5|49)[0-9]*\}$' out || fail "JSON: $(cat out)"
[ "$(grep -c '"file":"new.csv.gz"' out)" -eq 3 ] || fail "the second file: $(cat out)"
predict -m rows new.csv --out out.npz --top 2
"$bin/pd-convert" --inspect out.npz >inspected 2>/dev/null
for array in 'class +\[3\] +int64' 'probabilities +\[3, 3\] +float32' 'top_classes +\[3, 2\] +int64'; do
  grep -qE "$array" inspected || fail "arrays: $(cat inspected)"
done
# One list of all, also of one record.
predict -m rows new.csv new.csv.gz --format json >out
predict -m rows new.csv new.csv.gz --out list.json
jq -c '.[]' list.json | diff <(jq -c . out) - >diff.out || fail "a list: $(cat diff.out)"
head -n 2 new.csv | predict -m rows - --out list.json
[ "$(jq -c '[length, .[0].class]' list.json)" = '[1,"bee, or wasp"]' ] || fail "a list of one: $(cat list.json)"
# What a layer gives, here the columns and 0: no answer is made of it.
printf 'x1,x2\n1.5,-2\n0,0.25\n' >named.csv
predict -m rows --fetch x,fc named.csv >out
[[ $(head -n 1 out) = line,x_0,x_1,fc_0,fc_1,fc_2 && $(tail -n 1 out) = 3,0,0.25,* ]] || fail "a layer's values: $(cat out)"
predict -m rows --fetch fc --format json named.csv >out
[ "$(jq -c '[.line, (.fc | map(. * 1000 | round / 1000 + 0))]' out | paste -sd' ')" = '[2,[1.5,-2,0]] [3,[0,0.25,0]]' ] ||
  fail "a layer's values in JSON: $(cat out)"
predict -m rows --fetch fc named.csv --out fetched.npz
"$bin/pd-convert" --inspect fetched.npz 2>/dev/null | grep -qE 'fc +\[2, 3\] +float32' || fail "a layer's array"
refused "'fc' and 'fc' are one variable" -m rows --fetch fc,fc named.csv
refused "'fc.weight' is a parameter; predictions have one row a record" -m rows --fetch fc.weight named.csv
refused "the nearest layer is 'fc'" -m rows --fetch fd named.csv
refused "options '--fetch' and '--top' cannot go together" -m rows --fetch fc --top 2 named.csv
if "$bin/pd-eval" -m rows --fetch fc >/dev/null 2>err; then fail "--fetch of an evaluation"; fi
grep -q -- "--fetch is for --feed and --predict" err || fail "--fetch of an evaluation: $(cat err)"
# Without files: the job's own records.
predict -m rows | cut -d, -f1,2 >out
printf 'line,class\n2,"bee\n3,ant\n4,ant\n' | same "the job's own records" out
# A model whose file stands alone has no job; the run's says how rows are read.
"$bin/pd-export" -m rows --to paddle -o exported >/dev/null 2>&1
"$bin/pd-export" -m rows --to onnx -o exported.onnx >/dev/null 2>&1
rm -r exported.preprocess*
predict -m rows new.csv >out
for model in exported exported.onnx; do
  predict -m $model -c rows/job.pbtxt new.csv >out2
  cmp out out2 || fail "$model answers otherwise"
  refused "is no run, whose job says how records are read" -m $model new.csv
done

# Layers that only a metric looks at are not exported; answers need none.
sed -e 's/^loss .*/metric { label: "kind" input: "beside" accuracy {} } &/' \
  -e 's/layer { name: "fc"/output: "fc" layer { name: "beside" input: "x" linear { out_features: 3 } } layer { name: "fc" input: "x"/' rows.pbtxt >inside.pbtxt
"$bin/pd-train" -c inside.pbtxt --out inside >/dev/null 2>err || fail "inside: $(cat err)"
"$bin/pd-export" -m inside -o inside_exported >/dev/null 2>&1
predict -m inside_exported new.csv >out2
cmp out out2 || fail "a metric of a layer inside: $(cat out2)"

# Yes or no, from a network that gives out the probability while its loss takes
# the score: sigmoid(ln 3) is 3/4.
printf 'who,y\n0,1\n1,0\n' >clicks.csv
cat >clicks.pbtxt <<EOF
model { input { name: "who" shape: [-1, 1] }
  layer { name: "score" linear { out_features: 1 $(fixed 1.0986122886681098) } } layer { sigmoid {} } }
loss { input: "score" label: "y" bce_with_logits_loss {} }
data { train { csv { path: "clicks.csv" field { name: "who" column: "who" } field { name: "y" column: "y" } } batch_size: 2 } }
$still
EOF
"$bin/pd-train" -c clicks.pbtxt --out clicks >/dev/null 2>err || fail "clicks: $(cat err)"
printf 'who\n1\n-1\n' | predict -m clicks - >out
printf 'line,class,probability\n2,1,0.75\n3,0,0.75\n' | same "yes or no" out

# Numbers under the label's name: 2 a + 3 b.
printf 'y,a,b\n1,2,3\n4,5,6\n' >sums.tsv.csv
fields='field { name: "x" column: "a:b" } field { name: "y" column: "y" }'
cat >sums.pbtxt <<EOF
model { input { name: "x" shape: [-1, 2] } layer { linear { out_features: 1 $(fixed "2, 3") } } }
loss { label: "y" mse_loss {} }
data { train { csv { path: "sums.tsv.csv" $fields } batch_size: 2 } }
$still
EOF
"$bin/pd-train" -c sums.pbtxt --out sums >/dev/null 2>err || fail "sums: $(cat err)"
printf 'b\ta\n2\t1\n-1\t10\n' >sums.tsv
predict -m sums sums.tsv >out
printf 'line,y\n2,8\n3,17\n' | same "numbers" out
printf '\n{"x": 1}\n' | refused "lines of JSON, which this data set does not describe" -m sums --from jsonl -
printf 'a;b\n1;2\n' >semicolons.csv
refused "seem to be separated by ';', not by ','" -m sums semicolons.csv
printf 'a,b\n1,\n' >gap.csv
refused "'gap.csv':2:3: the cell is empty; expected a number (missing: 0 in field 'x'" -m sums gap.csv

# A long stream, in order, with the lines of a text that quotes line breaks.
{ printf 'a,b,note\n'; for i in $(seq 9000); do printf '%d,0,"x\ny"\n' "$i"; done; } >long.csv
predict -m sums - <long.csv >out
awk 'BEGIN { print "line,y"; for (i = 1; i <= 9000; ++i) printf "%d,%d\n", 2 * i, 2 * i }' | same "a stream" out

# Pictures: the largest channel; e / (e + 2) = 0.576117 of a pure colour.
picture() { printf 'P6 1 1 255\n' >"$1" && printf '%b' "$2" >>"$1"; }
mkdir -p shots/blue shots/green shots/red found/deep
picture shots/red/1.ppm '\xff\x00\x00'
picture shots/green/1.ppm '\x00\xff\x00'
picture shots/blue/1.ppm '\x00\x00\xff'
cp shots/green/1.ppm found/a.ppm
cp shots/red/1.ppm found/deep/b.ppm
cp shots/blue/1.ppm single.ppm
set='dataset_folder { root: "shots" } transform { to_tensor {} } batch_size: 3'
cat >colours.pbtxt <<EOF
model { input { name: "image" shape: [-1, 3, 1, 1] } layer { flatten {} }
  layer { linear { out_features: 3 $(fixed "0, 0, 1, 0, 1, 0, 1, 0, 0") } } layer { softmax {} } }
loss { cross_entropy { use_softmax: false } }
data { train { $set } eval { $set } }
$still
EOF
"$bin/pd-train" -c colours.pbtxt --out colours >/dev/null 2>err || fail "colours: $(cat err)"
rm -r shots
predict -m colours found single.ppm >out
same "pictures" out <<'EOF'
file,class,probability
found/a.ppm,green,0.576117
found/deep/b.ppm,red,0.576117
single.ppm,blue,0.576117
EOF
predict -m colours --format json - <single.ppm | grep -q '^{"file":"-","class":"blue","number":0,' || fail "a picture of standard input"
echo broken >found/c.png
refused "'found/c.png'" -m colours found
predict -m colours found -o data.eval.on_error=skip >out
[ "$(wc -l <out)" -eq 3 ] || fail "skipped pictures: $(cat out)"
grep -q "1 records were left out: 'found/c.png'" err || fail "no word of the picture: $(cat err)"
refused "cannot open 'nowhere'" -m colours --from pictures nowhere
refused "changes pictures at random" -m colours found -o 'data.eval.transform[0]={ random_horizontal_flip {} }'

# Lines of text, whose last word says the class.
for i in $(seq 1 60); do
  if ((i % 2)); then printf 'good\tw%d yes\n' $((i % 7)); else printf 'bad\tw%d w%d no\n' $((i % 5)) $((i % 3)); fi
done >texts.tsv
fields='header: false field { name: "words" column: "1" text {} } field { name: "label" column: "0" categories {} }'
cat >texts.pbtxt <<EOF
model { input { name: "words" shape: [-1, -1] dtype: int64 }
  layer { embedding { num_embeddings: 32 embedding_dim: 8 } } layer { mean { axis: 1 } } layer { linear { out_features: 2 } } }
loss { cross_entropy {} }
optimizer { adam { learning_rate: 0.05 } }
data { train { tsv { path: "texts.tsv" $fields } batch_size: 10 shuffle: true } eval { tsv { path: "texts.tsv" $fields } batch_size: 10 } }
train { epochs: 8 }
EOF
"$bin/pd-train" -c texts.pbtxt --out texts >/dev/null 2>err || fail "texts: $(cat err)"
printf 'w1 yes\nw2 w1 no\nunknown yes\n' >texts.txt
predict -m texts texts.txt | cut -d, -f1,2 >out
printf 'line,class\n1,good\n2,bad\n3,good\n' | same "lines of text" out
predict -m texts --from text - <texts.txt | cut -d, -f1,2 | diff - out || fail "lines of standard input"
cut -f 2 texts.tsv | predict -m texts --from text - | tail -n +2 | cut -d, -f2 >out
cut -f 1 texts.tsv | same "all lines" out
refused "(--from says what it is)" -m sums --from text texts.txt

# Text for text: a network that answers each letter with itself.
printf 'abcab\ncabca\nbcabc\n' >letters.txt
ones=$(awk 'BEGIN { for (i = 0; i < 8; ++i) for (j = 0; j < 8; ++j) printf "%s%d", i + j ? ", " : "", i == j }')
cat >letters.pbtxt <<EOF
model { input { name: "input" shape: [-1, -1] dtype: int64 }
  layer { embedding { num_embeddings: 8 embedding_dim: 8 weight_attr { initializer { assign { value: [$ones] } } } } }
  layer { linear { out_features: 8 $(fixed "$ones") } } }
loss { cross_entropy {} }
data { train { language_model { path: "letters.txt" seq_len: 4 } batch_size: 2 } }
$still
EOF
"$bin/pd-train" -c letters.pbtxt --out letters >/dev/null 2>err || fail "letters: $(cat err)"
printf 'cab\n\nabcabc\n' >lines.txt
predict -m letters lines.txt >out
printf 'line,text\n1,cab\n2,\n3,abcabc\n' | same "decoded text" out

# A class for each pixel, the larger of two channels: pictures and an array.
for rows in '[[[9, 0]], [[0, 9]], [[0, 0]]]' '[[[0, 9]], [[9, 0]], [[0, 0]]]' '[[[9, 0]], [[0, 9]], [[7, 7]]]'; do
  echo "{\"image\": $rows, \"label\": [[0, 1]]}"
done >pixels.jsonl
set='jsonl { path: "pixels.jsonl" field { name: "image" shape: [3, 1, 2] } field { name: "label" shape: [1, 2] dtype: int64 } } batch_size: 2'
cat >pixels.pbtxt <<EOF
model { input { name: "image" shape: [-1, 3, 1, 2] }
  layer { conv2d { out_channels: 2 kernel_size: 1 $(fixed "1, 0, 0, 0, 1, 0") } } }
loss { cross_entropy { axis: 1 } }
data { train { $set } eval { $set } }
$still
EOF
"$bin/pd-train" -c pixels.pbtxt --out pixels >/dev/null 2>err || fail "pixels: $(cat err)"
sed 's/, "label.*/}/' pixels.jsonl >images.jsonl
predict -m pixels images.jsonl --out masks.csv
printf 'line,mask\n1,masks_masks/000000.png\n2,masks_masks/000001.png\n3,masks_masks/000002.png\n' | same "masks" masks.csv
cmp masks_masks/000000.png masks_masks/000002.png || fail "the same classes look different"
if cmp -s masks_masks/000000.png masks_masks/000001.png; then fail "other classes look the same"; fi
predict -m pixels images.jsonl --out masks.npz
"$bin/pd-convert" --inspect masks.npz 2>/dev/null | grep -qE 'classes +\[3, 1, 2\] +int64' || fail "masks as an array"
refused "say with --masks FOLDER where the pictures go" -m pixels images.jsonl

# Files say that they are to be predicted, but not a job whose -c was forgotten.
predict -m rows new.csv --top 2 --out told.csv
"$bin/pd-eval" -m rows new.csv --top 2 --out untold.csv 2>err || fail "a file without --predict: $(cat err)"
cmp told.csv untold.csv || fail "a file without --predict is predicted otherwise"
refused "'rows.pbtxt' is a job, not a record: -c rows.pbtxt" -m rows rows.pbtxt
refused "'new.csv': a FILE is for --predict, not for --bench" -m rows --bench 1 new.csv

# What is asked for in vain.
refused "--masks is for networks that give each pixel a class" -m rows new.csv --masks there
refused "predictions are written as .csv, .json, .jsonl or .npz" -m rows new.csv --out out.txt
refused "has no column 'x1'" -m rows sums.tsv
refused "it was read as a table, like the job's data set: --from says what it is" -m rows - <<<'some text'

# A table of texts: without a name that tells it is read as the job's, and a
# message says how texts alone are read.
printf 'text\tkind\ngood film\tyes\nbad film\tno\n' >films.tsv
cat >films.pbtxt <<EOF
model { input { name: "text" shape: [-1, -1] dtype: int64 }
  layer { embedding { num_embeddings: 20 embedding_dim: 2 } } layer { mean { axis: 1 } }
  layer { name: "fc" linear { out_features: 2 } } }
loss { label: "kind" cross_entropy {} }
data { train { tsv { path: "films.tsv" field { name: "text" column: "text" text {} }
  field { name: "kind" column: "kind" categories {} } } batch_size: 2 } }
$still
EOF
"$bin/pd-train" -c films.pbtxt --out films >/dev/null 2>err || fail "films: $(cat err)"
refused "'-' has no column 'text'; its only column is 'good film'; it was read as a table, like the job's data set: --from says what it is, --from text a text a line" \
  -m films - <<<'good film'
predict -m films - --from text <<<'good film' >out
predict -m films - <<<$'text\ngood film' | sed 's/^2,/1,/' | same "a text alone" out

# What an exported model needs to read records is beside it, the words and
# classes too, wherever the files are and whatever becomes of the run.
predict -m rows new.csv >rows.want
predict -m films - --from text <<<'good film' >films.want
for to in paddle paddle-legacy onnx; do
  for run in films rows; do
    rm -rf there away
    mkdir there
    name=$run
    [ $to != onnx ] || name=$run.onnx
    "$bin/pd-export" -m $run --to $to -o there/$name >/dev/null 2>err || fail "export: $(cat err)"
    mv there away
    mv $run gone
    if [ $run = films ]; then
      predict -m away/$name - --from text <<<'good film' >out
    else
      predict -m away/$name new.csv >out
    fi
    mv gone $run
    cmp out $run.want || fail "$run as $to, with what stands beside it: $(cat out)"
  done
done
# It is a job, and evaluates; no other model's stays behind.
"$bin/pd-export" -m rows -o beside >/dev/null 2>err
"$bin/pd-eval" -q -m beside >out 2>err || fail "what stands beside a model evaluates: $(cat err)"
"$bin/pd-eval" -q -m rows >out2 2>err
diff out out2 || fail "an exported model is evaluated otherwise"
"$bin/pd-export" -m beside --to onnx -o copied.onnx >/dev/null 2>err
predict -m copied.onnx new.csv | same "a model that is exported again" rows.want
"$bin/pd-export" -m beside --to onnx -o beside.onnx >/dev/null 2>err
predict -m beside.onnx new.csv | same "a model that is exported again under its name" rows.want
"$bin/pd-export" -m rows -o beside --with-transforms >/dev/null 2>err
[ ! -e beside.preprocess.pbtxt ] || fail "a model that reads what the data hold has the job's transforms beside it"
[ ! -e beside.preprocess ] || fail "names stay behind"
