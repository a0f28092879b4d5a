// AND and OR of packed lists step by step, as the papers have them: the module of steps.rs.
#include "papers/accumulate.cu"
