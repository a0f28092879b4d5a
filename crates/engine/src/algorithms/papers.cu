// The papers' kernels for lists and scores that are not compressed, one translation unit: the module of papers.rs.
#include "batched_intersection.cu"
#include "binary_intersection.cu"
#include "merge_path.cu"
#include "parallel_merge_find.cu"
#include "selection.cu"
