// SPDX-License-Identifier: Apache-2.0
#include "cmd/quant_options.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/feed_options.h"
#include "cmd/common/plugin_option.h"
#include "libcore/base/file_target.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx_export.h"
#include "libcore/quant/thresholds.h"

namespace pd {
namespace {

std::vector<std::string> Description() {
  return {
      "The model runs over a few hundred records of `DATA`; the range of every "
      "activation is observed, batch by batch, and becomes a threshold that "
      "127 stands for. Convolutions and matrix products then multiply 8-bit "
      "integers. Other operators stay in floating point; what cannot be "
      "quantized is left and listed.",
      "`DATA` is an npz file with an array for each input, its first axis the "
      "record, or a job, of whose data section the training set is read in "
      "file order. An input of the model takes the array or field of its name, "
      "else the first one that fits. Pictures, a folder as `DATA` or given as "
      "`PICTURE`, become what the model is fed as the data set of its job "
      "says: the run's, the `preprocess.pbtxt` beside an exported model, or "
      "that of `-c`.",
      "`--to paddle` writes PaddlePaddle's newer form: int8 weights behind "
      "dequantize_linear, activations through quantize_linear. `--to "
      "paddle-fake` writes its older form with fake_quantize operators, whose "
      "weights are integers in float32: four times as large, and what older "
      "engines read. `--to onnx` writes QuantizeLinear and DequantizeLinear, "
      "which ONNX Runtime turns into 8-bit operators.",
      "Batch norms become part of the scales of the convolutions before them "
      "and a bias, where weights have a scale for each channel.",
      "Thresholds are those of PaddlePaddle's PostTrainingQuantization; of "
      "`KL` and `hist` to one of the 2048 bins of their histogram. `hist`, the "
      "largest value but for one in 100000, is the default: it costs little "
      "more than running the network and does no harm where a few large values "
      "matter, as in maps of where something is. `KL` clips more.",
      "`--weight-only` needs no data: weights alone become integers, and are "
      "computed with in floating point. `--to paddle-lite` writes them as "
      "PaddlePaddle's WeightQuantization does, for Paddle Lite: with the "
      "scales "
      "in attributes of the operators conv2d, depthwise_conv2d and mul, which "
      "linear layers become. PaddlePaddle itself loads that form and does not "
      "run it; pd-eval does.",
      "`--dynamic` needs no data either: the weights of linear and recurrent "
      "layers become 8-bit integers, and so does what they are multiplied by, "
      "when the model "
      "runs, with a scale for each row (a record, a word, a step). pd-eval "
      "multiplies integers; PaddlePaddle runs the same file in floating "
      "point. It is for networks whose weights are there, such as "
      "transformers and LSTMs. `--to onnx` writes linear layers as "
      "DynamicQuantizeLinear and MatMulInteger, which ONNX Runtime multiplies "
      "integers with; there all rows of a product share one scale, so answers "
      "differ a little. Recurrent layers have no ONNX form here."};
}

Manual QuantManual() {
  Manual m;
  m.name = "pd-quant";
  m.summary = "make a model of 8-bit integers from a trained one";
  m.synopsis = {
      "-m MODEL --calib DATA -o OUT [--algo NAME] [--to FORM] [--skip NAME]... "
      "[--compare JOB [--max-drop POINTS]] [--report FILE]",
      "-m MODEL -o OUT PICTURE...",
      "-m MODEL --weight-only [--bits 8|16] -o OUT [--to FORM] [--skip "
      "NAME]...",
      "-m MODEL --dynamic -o OUT [--to paddle|onnx] [--skip NAME]... "
      "[--compare JOB]"};
  m.description = Description();
  m.answer_no =
      "the calibration data or what the model makes of it holds NaN or Inf, or "
      "`--max-drop` or `--min-sqnr` cannot be kept";
  m.examples = {
      {"Train a little to have something to quantize",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --out RUN --steps 200"},
      {"Quantize it with 512 training pictures and compare on the test set",
       "pd-quant -m RUN --calib testdata/jobs/lenet_mnist.pbtxt --batches 8 "
       "--compare testdata/jobs/lenet_mnist.pbtxt -o out/int8"},
      {"Run the result",
       "pd-eval -m out/int8 -c testdata/jobs/lenet_mnist.pbtxt -q"},
      {"Keep the first convolution in floating point, take another algorithm, "
       "write ONNX",
       "pd-quant -m RUN --calib testdata/jobs/lenet_mnist.pbtxt --batches 4 "
       "--algo mse --skip 'conv1*' --to onnx -o out/int8.onnx"},
      {"Learn the roundings, and keep what costs most in floating point until "
       "the accuracy is within half a point; a page shows every layer",
       "pd-quant -m RUN --calib testdata/jobs/lenet_mnist.pbtxt --batches 4 "
       "--round adaround --compare testdata/jobs/lenet_mnist.pbtxt --max-drop "
       "0.5 --report out/int8.html -o out/best"},
      {"Keep every answer 20 dB above its noise, where there is nothing to "
       "compare with",
       "pd-quant -m RUN --calib testdata/jobs/lenet_mnist.pbtxt --batches 4 "
       "--min-sqnr 20 -o out/near"},
      {"Weights alone, of 8 bits",
       "pd-quant -m RUN --weight-only -o out/weights8"},
      {"Linear layers alone, with ranges found when the model runs",
       "pd-quant -m RUN --dynamic -o out/dynamic8"}};
  m.see_also = {"pd-eval 1", "pd-export 1", "pd-train 1", "pd-job 5"};
  return m;
}

void BindCalibration(QuantOptions* o, OptionTable* table) {
  table->Group("Calibration");
  table->Text({"--calib", "DATA",
               "an npz file, a job with a data section, or a folder of "
               "pictures"},
              &o->calib);
  table->Positional({"", "PICTURE", "pictures and folders to calibrate on"},
                    1 << 20, &o->pictures);
  table->Choice({"--calib-set", "SET", "which set of a job is read"},
                {"train", "eval"}, &o->calib_set);
  table->Integer({"--batch", "N", "records in a batch"}, {1, 1 << 20},
                 &o->batch);
  table->DescribeDefault("--batch", "32 of an npz file, the job's else");
  table->Integer({"--batches", "N", "how many batches are read"}, {1, 1 << 30},
                 &o->batches);
  table->DescribeDefault("--batches",
                         "all of an npz file and of pictures, 16 of a job");
  table->Choice({"--algo", "NAME", "how thresholds of activations are found"},
                QuantAlgorithmNames(), &o->algo);
  table->Real({"--percentile", "SHARE",
               "of `--algo hist`: the share of values below the threshold"},
              {0.5, 1}, &o->percentile);
}

void BindWeights(QuantOptions* o, OptionTable* table) {
  table->Group("Weights");
  table->Choice({"--weights", "NAME",
                 "how scales of weights are found: the greatest value or the "
                 "least squared error, of each channel or of the whole"},
                {"channel_wise_abs_max", "channel_wise_mse", "abs_max", "mse"},
                &o->weights);
  table->Switch({"--weight-only", "", "quantizes weights and nothing else"},
                &o->weight_only);
  table->Switch({"--dynamic", "",
                 "quantizes linear and recurrent layers; what they read, when "
                 "the model runs"},
                &o->dynamic);
  table->Choice({"--bits", "N", "bits of a weight, with --weight-only"},
                {"8", "16"}, &o->bits);
  table->Choice({"--round", "NAME",
                 "nearest integers, or those that change least what each layer "
                 "gives for the calibration data, which takes longer"},
                {"nearest", "adaround"}, &o->round);
  table->Switch({"--bias-correction", "",
                 "rounds weights so that the mean of each channel stays what "
                 "it is"},
                &o->bias_correction);
}

void BindQuant(QuantOptions* o, OptionTable* table) {
  table->Group("Model");
  table->Text(
      {"-m,--model,--model_file", "MODEL", "what to quantize, see `pd-eval`"},
      &o->model);
  BindParamsFile(table, &o->params_file);
  table->Require("--model");
  table->Text({"-c,--config", "JOB",
               "the job whose network takes the parameters of a `.pdparams`"},
              &o->config);
  table->Switch({"--fold-batch-norms", "",
                 "folds batch norms into convolutions before calibration, "
                 "not after it; always so with --to onnx and with --equalize"},
                &o->fold_batch_norms);
  table->Switch({"--keep-batch-norms", "",
                 "leaves batch norms in the model, as PaddlePaddle does"},
                &o->keep_batch_norms);
  table->Switch({"--equalize", "",
                 "scales the channels between two layers so that both layers' "
                 "weights of a channel are of one size; answers stay"},
                &o->equalize);
  table->Texts({"--skip", "NAME",
                "leaves an operator type in floating point, or the operators "
                "that touch a variable; `*` and `?` stand for any text. May be "
                "given again"},
               &o->skip);
  BindCalibration(o, table);
  BindWeights(o, table);
  table->Group("Result");
  table->Text({"-o,--out", "OUT",
               "prefix or file to write; with `--to onnx`, which is one file"},
              &o->out);
  table->Require("--out");
  table->Choice({"--to", "FORM", "what to write"},
                {"paddle", "paddle-fake", "paddle-lite", "onnx"}, &o->to);
  table->Integer({"--opset", "N", "the ONNX operator set"}, {13, kMaxOnnxOpset},
                 &o->opset);
  table->Group("Comparison");
  table->Text({"--compare", "JOB",
               "evaluates before and after on the job's evaluation set"},
              &o->compare);
  table->Text({"--metric", "NAME", "which result of the job counts"},
              &o->metric);
  table->DescribeDefault("--metric", "the job's first metric");
  table->Real({"--max-drop", "POINTS",
               "leaves the most sensitive operators in floating point until "
               "the metric is at most this much worse, in hundredths"},
              {0, 100}, &o->max_drop);
  table->Real({"--min-sqnr", "DB",
               "leaves the most sensitive operators in floating point until "
               "every answer on calibration data is so many dB above its "
               "noise; needs no labels"},
              {0, 120}, &o->min_sqnr);
  table->Real({"--latency", "SECONDS",
               "times both models here for so long, one record at a time"},
              {0.01, 3600}, &o->latency);
  table->DescribeDefault("--latency", "1 with --report, else not at all");
  table->Text({"--report", "FILE",
               "writes a page with the error of every layer and histograms"},
              &o->report);
  table->TakesStream("--config", StandardStream::kInput);
  table->TakesStream("--compare", StandardStream::kInput);
  table->TakesStream("--out", StandardStream::kOutput);
  table->TakesStream("--report", StandardStream::kOutput);
}

}  // namespace

Tool QuantTool(QuantOptions* options) {
  Tool tool;
  tool.manual = QuantManual();
  tool.common = &options->common;
  tool.takes_gpu = true;
  tool.bind = [options](OptionTable* table) {
    BindQuant(options, table);
    BindPluginOption(table, &options->common);
  };
  tool.validate = [options](const OptionTable& table) -> absl::Status {
    PD_RETURN_IF_ERROR(table.Needs("--bits", "--weight-only"));
    PD_RETURN_IF_ERROR(table.Needs("--max-drop", "--compare"));
    PD_RETURN_IF_ERROR(table.Needs("--metric", "--compare"));
    if (options->pictures.empty())
      PD_RETURN_IF_ERROR(table.Needs("--min-sqnr", "--calib"));
    if (table.Given("--min-sqnr") && table.Given("--max-drop"))
      return CommandLineError("say --min-sqnr or --max-drop, not both");
    for (const char* needs : {"--calib-set", "--batch", "--batches"})
      if (options->pictures.empty() || needs == std::string("--calib-set"))
        PD_RETURN_IF_ERROR(table.Needs(needs, "--calib"));
    const bool calibrates =
        table.Given("--calib") || !options->pictures.empty();
    if (table.Given("--calib") && !options->pictures.empty())
      return CommandLineError(
          absl::StrCat("'", options->pictures[0],
                       "' and --calib both say what to calibrate "
                       "on; leave one out"));
    if (calibrates + options->weight_only + options->dynamic != 1)
      return CommandLineError(
          "say either with --calib what to calibrate on, or --weight-only, or "
          "--dynamic");
    if (!calibrates)
      for (const char* other : {"--algo", "--round", "--max-drop", "--report"})
        if (table.Given(other))
          return CommandLineError(
              std::string(other) + " is for activations; " +
              (options->dynamic ? "--dynamic finds their ranges when it runs"
                                : "--weight-only leaves them alone"));
    if (options->dynamic && options->to != "paddle" && options->to != "onnx")
      return CommandLineError("--dynamic is for --to paddle and --to onnx");
    if (options->weight_only && options->to == "paddle-fake")
      return CommandLineError(
          "--to paddle-fake is for activations; --weight-only has --to paddle, "
          "paddle-lite and onnx");
    if (!options->weight_only && options->to == "paddle-lite")
      return CommandLineError("--to paddle-lite is for --weight-only");
    for (const char* folds : {"--fold-batch-norms", "--equalize"})
      if (options->keep_batch_norms && table.Given(folds))
        return CommandLineError(
            std::string("--keep-batch-norms does not go with ") + folds);
    if (options->keep_batch_norms && options->to == "onnx")
      return CommandLineError("--keep-batch-norms is not for --to onnx");
    if (options->round == "adaround" && options->bias_correction)
      return CommandLineError(
          "--bias-correction chooses the integers too; it does not go with "
          "--round adaround");
    if (table.Given("--percentile") && options->algo != "hist")
      return CommandLineError("--percentile is for --algo hist");
    if (table.Given("--opset") && options->to != "onnx")
      return CommandLineError("--opset is for --to onnx");
    if (options->bits == "16" && options->to == "onnx")
      return CommandLineError(
          "weights of 16 bits are for --to paddle and --to paddle-lite");
    if (options->out == kStandardStream && options->to != "onnx")
      return CommandLineError("--to " + options->to +
                              " writes several files; --to onnx writes one, "
                              "which standard output takes");
    return absl::OkStatus();
  };
  return tool;
}

}  // namespace pd
