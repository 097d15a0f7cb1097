# The kernels for GPUs, for nvcc, the library and the fake driver of the tests.
# `foo` is foo.cc, which defines void AddFoo(KernelTable*) in namespace pd::cuda,
# and foo.cu with its kernels where it has any of its own. Kernels of one op are
# asked in this order.
set(PD_CUDA_KERNELS
  elementwise
  reduce
  transpose
  concat
  softmax
  loss
  group_norm
  top_k
  batch_norm
  pool
  interp
  layer_norm
  lookup_table_v2
  dropout
  selected_rows
  where
  elementwise_integers
  fused_elemwise_activation
  prelu
  sequence
  sequence_rows
  linear_chain_crf
  warpctc
  gather_tree
  nce
  hierarchical_sigmoid
  row_conv
  unfold
  cast
  fake_quantize
  grid_sampler
  bilinear_tensor_product
  spectral_norm
  yolov3_loss
  auc
  gather
  cumsum
  update
  lamb
  matmul
  fused_gemm_epilogue
  int8
  int8_tensor
  int8_dynamic
  rnn
  lstm
  gru
  sequence_conv
  conv
  attention
)
# What several of them start: foo.cc and foo.cu.
set(PD_CUDA_SHARED argsort linear_rows non_finite row_maps row_sums)

# PD_CUDA_DEVICE_SOURCES: every .cu, from the root of the tree.
set(PD_CUDA_DEVICE_SOURCES "")
foreach(name ${PD_CUDA_KERNELS} ${PD_CUDA_SHARED})
  if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/${name}.cu)
    list(APPEND PD_CUDA_DEVICE_SOURCES libcore/kernels/cuda/${name}.cu)
  endif()
endforeach()
