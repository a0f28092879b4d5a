// The papers' kernels over plain lists and keys: the module of mod.rs.
#include "papers/binary_intersection.cu"
#include "papers/batched_intersection.cu"
#include "papers/merge_path.cu"
#include "papers/parallel_merge_find.cu"
#include "papers/selection.cu"
