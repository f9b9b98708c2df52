/* Random checkpoints of any shape in the release layout, for tests and measurements. */
#ifndef PL_CHECKPOINT_SYNTH_H
#define PL_CHECKPOINT_SYNTH_H

#include "checkpoint/checkpoint.h"

/* Tell how many Engram classes the tokenizer (text of a tokenizer.json) gives. A callback, because the rule belongs to
 * the text folder, which this one may not include. */
typedef pl_status pl_synth_classes_fn(void *arg, const char *tokenizer_json, size_t len, int64_t *classes,
                                      pl_error *err);

typedef struct pl_synth {
    const char *config_json; /* text of a config.json */
    size_t config_len;
    const char *where; /* its name, for messages */
    uint64_t seed;
    const char *out; /* folder; made when it is missing, with the folders above it */
    pl_synth_classes_fn *classes;
    void *classes_arg;
    pl_progress_fn *progress; /* may be NULL */
    void *progress_arg;
} pl_synth;

/* Write the whole checkpoint: shards as in inventory.h, index, tokenizer.json, tokenizer_config.json,
 * generation_config.json and, last, config.json: the given one with engram_compressed_vocab_size set to what the
 * tokenizer gives. Each file appears under its name only when it is complete. The bytes depend on the config and the
 * seed alone. Memory: a few megabytes, whatever the size.
 * PL_EINVAL when the folder holds a config.json already or its disk has too little room, PL_EFORMAT for a bad config or
 * a vocabulary too small for a tokenizer, PL_EIO, PL_ENOMEM. */
pl_status pl_synth_write(const pl_synth *synth, pl_error *err);

#endif
