/* A checkpoint in the release layout: mapped safetensors shards, every tensor checked against the config's inventory. */
#ifndef PL_CHECKPOINT_CHECKPOINT_H
#define PL_CHECKPOINT_CHECKPOINT_H

#include "checkpoint/config.h"
#include "checkpoint/format.h"

typedef enum pl_dtype { PL_BF16, PL_F32, PL_F8_E4M3, PL_F8_E8M0, PL_I8 } pl_dtype;

/* One tensor where it lies in a mapped shard. */
typedef struct pl_tensor {
    pl_dtype dtype;
    int rank; /* 1 or 2 here */
    int64_t dim[2];
    const unsigned char *data; /* in the map: may be unaligned, never copied */
    size_t bytes;
} pl_tensor;

typedef struct pl_checkpoint pl_checkpoint;

/* Progress of long work: done of total bytes. May be NULL. Called from the opening thread. */
typedef void pl_progress_fn(void *arg, const char *what, uint64_t done, uint64_t total);

/* Open DIR: config.json, model.safetensors.index.json, shards. Strict: see the list in docs/internals/checkpoint.md.
 * All scale bytes are read once, on up to `threads` threads (a NaN byte, 255, is refused); tensors with bytes outside the
 * exact range are logged once each. The shards stay mapped until close. */
pl_status pl_checkpoint_open(pl_checkpoint **checkpoint, const char *dir, int threads, pl_progress_fn *progress,
                             void *arg, pl_error *err);
void pl_checkpoint_close(pl_checkpoint *checkpoint);
const pl_config *pl_checkpoint_config(const pl_checkpoint *checkpoint);
const char *pl_checkpoint_dir(const pl_checkpoint *checkpoint);

/* A tensor by its full name. PL_ENOTFOUND when the file has none (only possible for optional tensors). */
pl_status pl_checkpoint_tensor(const pl_checkpoint *checkpoint, const char *name, pl_tensor *tensor, pl_error *err);

/* A weight matrix by the name without ".weight" ("layers.0.attn.wq_a"): `X.weight` with its `X.scale` where the format has
 * one. The same for names without a ".weight" ("layers.0.hc_attn_fn"). PL_ENOTFOUND. */
pl_status pl_checkpoint_mat(const pl_checkpoint *checkpoint, const char *name, pl_mat *mat, pl_error *err);

#endif
