/* A checkpoint in the release layout: mapped safetensors shards, every tensor checked against the config's
 * inventory. */
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
    /* In the map, so possibly unaligned; but BF16 and F32 values do lie on a multiple of their size: where a file put
     * them elsewhere (legal, though no known writer does) a copy in memory stands in. Engram tables are never
     * copied. */
    const unsigned char *data;
    size_t bytes;
} pl_tensor;

typedef struct pl_checkpoint pl_checkpoint;

/* Progress of long work: done of total bytes. May be NULL. Called from the opening thread. */
typedef void pl_progress_fn(void *arg, const char *what, uint64_t done, uint64_t total);

/* Open DIR: config.json, model.safetensors.index.json (or a lone model.safetensors), shards. Every tensor is checked
 * against the config's inventory; docs/internals/checkpoint.md lists what is refused. All scale bytes are read once, on
 * up to `threads` threads (0: one a processor); a NaN byte, 255, is refused, tensors with bytes outside the exact range
 * are logged once each. The shards stay mapped until close: a file that shrinks meanwhile ends the process (SIGBUS), as
 * with any map. PL_ENOTFOUND, PL_EFORMAT, PL_EIO, PL_ELIMIT, PL_ENOMEM; on failure *checkpoint is NULL. Afterwards the
 * checkpoint is read-only: any thread may call the functions below. */
pl_status pl_checkpoint_open(pl_checkpoint **checkpoint, const char *dir, int threads, pl_progress_fn *progress,
                             void *arg, pl_error *err);
void pl_checkpoint_close(pl_checkpoint *checkpoint);
const pl_config *pl_checkpoint_config(const pl_checkpoint *checkpoint);
const char *pl_checkpoint_dir(const pl_checkpoint *checkpoint);

/* A tensor by its full name. PL_ENOTFOUND when the file has none (only possible for optional tensors). */
pl_status pl_checkpoint_tensor(const pl_checkpoint *checkpoint, const char *name, pl_tensor *tensor, pl_error *err);

/* A weight matrix by the name without ".weight" ("layers.0.attn.wq_a"): `X.weight` with its `X.scale` where the format
 * has one. The same for names without a ".weight" ("layers.0.hc_attn_fn"). A vector of n values is a 1 x n matrix.
 * PL_ENOTFOUND. PL_EINVAL for the Engram tables, whose scales stand per row: take `engram.embed.weight` (F8_E4M3
 * [rows][engram_dim]) and `engram.embed.scale` (F8_E8M0 [rows][engram_dim / 32]) with pl_checkpoint_tensor. */
pl_status pl_checkpoint_mat(const pl_checkpoint *checkpoint, const char *name, pl_mat *mat, pl_error *err);

/* What the folder holds. */
typedef struct pl_checkpoint_info {
    size_t shards, tensors;
    uint64_t bytes;  /* of tensor data */
    uint64_t mapped; /* of the shard files */
    uint64_t heap;   /* memory of its own: tables of names, copies of unaligned tensors */
} pl_checkpoint_info;

void pl_checkpoint_info_get(const pl_checkpoint *checkpoint, pl_checkpoint_info *info);

/* What `heap` will be for a checkpoint of this config without optional extras, in bytes. */
uint64_t pl_checkpoint_table_bytes(const pl_config *config);

#endif
