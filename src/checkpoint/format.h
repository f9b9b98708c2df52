/* The formats in which weights lie in a checkpoint. The one header of this folder that kernels may include. */
#ifndef PL_CHECKPOINT_FORMAT_H
#define PL_CHECKPOINT_FORMAT_H

#include <stdbool.h>

/* How a weight matrix is stored. */
typedef enum pl_format {
    PL_FMT_BF16, /* data: bf16 [out][in] */
    PL_FMT_F32,  /* data: f32 [out][in] */
    PL_FMT_FP8,  /* data: e4m3 [out][in]; scale: e8m0 [ceil(out/32)][ceil(in/32)] */
    PL_FMT_FP4   /* data: e2m1 pairs [out][in/2], low nibble = even input; scale: e8m0 [out][in/32] */
} pl_format;

/* A matrix of weights, out x in, as the kernels read it. Points into the map. */
typedef struct pl_mat {
    pl_format format;
    int out, in;
    const unsigned char *data;
    const unsigned char *scale; /* NULL without one */
    bool wide;                  /* a scale byte lies outside the exact range (FP8 18..246, FP4 10..252) */
} pl_mat;

#endif
