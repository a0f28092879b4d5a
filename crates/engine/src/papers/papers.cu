// The papers' kernels for lists and scores that are not compressed, one translation unit: the module of papers.rs.
#include "papers/batched_intersection.cu"
#include "papers/binary_intersection.cu"
#include "papers/merge_path.cu"
#include "papers/parallel_merge_find.cu"
#include "papers/selection.cu"
