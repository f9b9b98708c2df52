/* Engram's token map: ids whose texts read alike share a class, and the n-gram hashes run over classes.
 *
 * The rule (model spec 3.6), for each id in order: text = its bytes with invalid UTF-8 as U+FFFD; if text holds U+FFFD
 * the key is the token's spelling in the vocabulary file, else the text after NFKC, NFD, dropping marks, lower case,
 * runs of space/tab/CR/LF to one space and trimming (a lone space stays), or the text itself when nothing is left.
 * Classes number the keys in order of first appearance; both kinds of key live in one name space. */
#ifndef PL_TEXT_TOKEN_MAP_H
#define PL_TEXT_TOKEN_MAP_H

#include "text/tokenizer.h"

typedef struct pl_token_map {
    uint32_t *map;    /* [size] class of each id */
    size_t size;      /* ids covered: 0..size-1 */
    uint32_t classes; /* classes are 0..classes-1 */
    bool cached;      /* read from the cache, not computed */
} pl_token_map;

/* Compute the map of all ids of tok. PL_EFORMAT when an id below pl_tokenizer_size has no token. PL_ENOMEM. */
pl_status pl_token_map_build(pl_token_map *out, const pl_tokenizer *tok, pl_error *err);

/* The map of tok for a model with `vocab` ids and `classes` expected classes, from the cache when it is there.
 * A tokenizer of another size or a map of another count is PL_EFORMAT: the hashes would read the wrong rows. PL_ENOMEM.
 * cache_dir: where maps are kept, made when it is missing; NULL or "": $PACELINE_CACHE_DIR, else
 * $XDG_CACHE_HOME/paceline, else $HOME/.cache/paceline, else nowhere.
 * The cache is a help, never a need: a file that is broken, foreign or cannot be written only costs time. */
pl_status pl_token_map_open(pl_token_map *out, const pl_tokenizer *tok, int64_t vocab, int64_t classes,
                            const char *cache_dir, pl_error *err);

/* Free it; safe on a zeroed struct. */
void pl_token_map_close(pl_token_map *map);

#endif
