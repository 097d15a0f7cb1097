// SPDX-License-Identifier: Apache-2.0
// A program in C that uses the API rightly once, and then makes mistakes: each
// is an answer, none a crash. Prints what failed; exit status 1 then.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pd_inference_api.h"

static int g_failures = 0;

static void Expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "failed: %s\n", what);
  ++g_failures;
}
#define EXPECT(condition) Expect(condition, #condition)

static void Settings(void) {
  PD_Config* config = PD_ConfigCreate();
  PD_ConfigSetModelDir(config, "folder");
  EXPECT(strcmp(PD_ConfigGetModelDir(config), "folder") == 0);
  PD_ConfigSetCpuMathLibraryNumThreads(config, 3);
  EXPECT(PD_ConfigGetCpuMathLibraryNumThreads(config) == 3);
  EXPECT(PD_ConfigIrOptim(config));
  PD_ConfigEnableMKLDNN(config);
  EXPECT(PD_ConfigMkldnnEnabled(config));
  PD_ConfigEnableMemoryOptim(config, TRUE);
  EXPECT(PD_ConfigMemoryOptimEnabled(config));
  const char* ops[] = {"conv2d", "relu"};
  PD_ConfigSetMkldnnOp(config, 2, ops);
  PD_ConfigEnableXpu(config, 1, FALSE, TRUE, "", "int16", FALSE, FALSE);
  EXPECT(!PD_ConfigUseXpu(config));
  size_t ranks[] = {2};
  int32_t extents[] = {1, 8};
  int32_t* shapes[] = {extents};
  const char* names[] = {"x"};
  PD_ConfigSetTrtDynamicShapeInfo(config, 1, names, ranks, shapes, shapes,
                                  shapes, FALSE);
  EXPECT(PD_ConfigTensorRtDynamicShapeEnabled(config));
  PD_OneDimArrayCstr* passes = PD_ConfigAllPasses(config);
  const size_t before = passes->size;
  PD_OneDimArrayCstrDestroy(passes);
  PD_ConfigDeletePass(config, "fold_batch_norms");
  passes = PD_ConfigAllPasses(config);
  EXPECT(passes->size + 1 == before);
  PD_OneDimArrayCstrDestroy(passes);
  PD_Cstr* summary = PD_ConfigSummary(config);
  EXPECT(summary->size == strlen(summary->data) + 1);
  PD_CstrDestroy(summary);
  PD_ConfigDestroy(config);
  // Twice, afterwards, and null.
  PD_ConfigDestroy(config);
  PD_ConfigEnableMKLDNN(config);
  EXPECT(PD_ConfigGetModelDir(config) == NULL);
  EXPECT(PD_PredictorCreate(config) == NULL);
  EXPECT(PD_PredictorCreate(NULL) == NULL);
  PD_ConfigSetModel(NULL, "a", "b");
  PD_ConfigDestroy(NULL);
}

static void Mistakes(PD_Predictor* predictor, PD_Tensor* input,
                     PD_Tensor* output) {
  float value = 0;
  int32_t size = 7;
  EXPECT(!PD_PredictorRun(predictor));  // before input
  EXPECT(PD_PredictorGetInputHandle(predictor, "nothing") == NULL);
  EXPECT(PD_PredictorGetInputHandle(predictor, NULL) == NULL);
  EXPECT(PD_TensorDataFloat(output, NULL, &size) == NULL && size == 0);
  PD_TensorCopyToCpuFloat(output, &value);
  PD_TensorCopyFromCpuFloat(input, &value);  // before a shape
  PD_TensorCopyFromCpuFloat(NULL, &value);
  PD_TensorReshape(input, 2, NULL);
  EXPECT(!PD_PredictorRun(NULL));
  EXPECT(PD_PredictorClone(NULL) == NULL);
  EXPECT(PD_PredictorGetInputNum(NULL) == 0);
  EXPECT(PD_TensorGetShape(NULL) == NULL);
  EXPECT(PD_TensorGetDataType(NULL) == PD_DATA_UNK);
  PD_TensorDestroy(NULL);
  PD_PredictorDestroy(NULL);
  PD_OneDimArrayInt32Destroy(NULL);
  PD_TwoDimArraySizeDestroy(NULL);
  PD_IOInfosDestroy(NULL);
}

static void Lod(PD_Tensor* input) {
  size_t offsets[] = {0, 2};
  PD_OneDimArraySize level = {2, offsets};
  PD_OneDimArraySize* levels[] = {&level};
  PD_TwoDimArraySize lod = {1, levels};
  PD_TensorSetLod(input, &lod);
  PD_TwoDimArraySize* got = PD_TensorGetLod(input);
  EXPECT(got->size == 1 && got->data[0]->size == 2 &&
         got->data[0]->data[1] == 2);
  PD_TwoDimArraySizeDestroy(got);
  lod.size = 0;
  PD_TensorSetLod(input, &lod);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  Settings();
  PD_Config* config = PD_ConfigCreate();
  PD_ConfigSetModel(config, argv[1], argv[2]);
  PD_Predictor* first = PD_PredictorCreate(config);
  EXPECT(first != NULL && !PD_ConfigIsValid(config));
  EXPECT(PD_PredictorCreate(config) == NULL);  // it is spent
  PD_Predictor* predictor = PD_PredictorClone(first);
  PD_IOInfos* infos = PD_PredictorGetInputInfos(predictor);
  EXPECT(infos->size == 1 && infos->io_info[0]->dtype == PD_DATA_FLOAT32);
  EXPECT(infos->io_info[0]->shape->size == 4);
  PD_Tensor* input =
      PD_PredictorGetInputHandle(predictor, infos->io_info[0]->name->data);
  PD_IOInfosDestroy(infos);
  PD_OneDimArrayCstr* names = PD_PredictorGetOutputNames(predictor);
  PD_Tensor* output = PD_PredictorGetOutputHandle(predictor, names->data[0]);
  PD_OneDimArrayCstrDestroy(names);
  Mistakes(predictor, input, output);
  Lod(input);

  int32_t shape[] = {2, 1, 28, 28};
  PD_TensorReshape(input, 4, shape);
  float* picture = PD_TensorMutableDataFloat(input, PD_PLACE_CPU);
  EXPECT(PD_TensorMutableDataFloat(input, PD_PLACE_GPU) == NULL);
  for (int i = 0; i < 2 * 28 * 28; ++i) picture[i] = 0.5f;
  EXPECT(PD_PredictorRun(predictor));
  PD_OneDimArrayInt32* extents = PD_TensorGetShape(output);
  EXPECT(extents->size == 2 && extents->data[0] == 2 && extents->data[1] == 10);
  PD_OneDimArrayInt32Destroy(extents);
  float scores[20];
  PD_TensorCopyToCpuFloat(output, scores);
  EXPECT(scores[8] == scores[18] && scores[8] > scores[0]);
  PD_TensorCopyToCpuInt64(output, NULL);  // another type
  PD_PredictorClearIntermediateTensor(predictor);
  EXPECT(PD_PredictorTryShrinkMemory(predictor) > 0);
  EXPECT(strstr(PD_GetVersion(), "version: ") != NULL);

  // Handles may outlive what they belong to.
  PD_PredictorDestroy(predictor);
  PD_PredictorDestroy(first);
  PD_TensorCopyToCpuFloat(output, scores);
  EXPECT(PD_TensorGetName(input) != NULL);
  PD_TensorDestroy(input);
  PD_TensorDestroy(output);
  return g_failures == 0 ? 0 : 1;
}
