/* Private to this folder: a byte-level BPE tokenizer.json of any vocabulary size. */
#ifndef PL_CHECKPOINT_SYNTH_TOKENIZER_H
#define PL_CHECKPOINT_SYNTH_TOKENIZER_H

#include "base/buf.h"
#include "checkpoint/config.h"

/* Append the text of a tokenizer.json with exactly config->vocab_size ids: the release's pre-tokenizer, its control
 * tokens by their spelling (bos, eos, pad and image where the config puts them, <|System|> at the noise token as in the
 * release, the others near the end), the 256 bytes, and merges of letters for the rest. PL_EFORMAT when the vocabulary
 * is too small (under about 280 ids), PL_ENOMEM, PL_ELIMIT. */
pl_status pl__synth_tokenizer(const pl_config *config, pl_buf *out, pl_error *err);

#endif
