/* Private to this folder: the small JSON files of a synthetic checkpoint. */
#ifndef PL_CHECKPOINT_SYNTH_TEXT_H
#define PL_CHECKPOINT_SYNTH_TEXT_H

#include "base/buf.h"
#include "checkpoint/config.h"

/* The given config.json with engram_compressed_vocab_size set, pretty-printed. Every other value reads back the
 * same. */
pl_status pl__synth_config(const char *json, size_t len, int64_t classes, pl_buf *out, pl_error *err);
pl_status pl__synth_generation_config(const pl_config *config, pl_buf *out, pl_error *err);
pl_status pl__synth_tokenizer_config(const pl_config *config, pl_buf *out, pl_error *err);

#endif
