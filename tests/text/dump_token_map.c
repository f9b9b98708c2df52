/* dump_token_map TOKENIZER.json: the Engram token map as little-endian int32 on standard output, the count of classes
 * on standard error. For the comparison with the reference library (peer/compare.mjs). */
#include "text/token_map.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    pl_error err;
    pl_tokenizer *tok = NULL;
    pl_token_map map;
    if (argc != 2) {
        fprintf(stderr, "usage: dump_token_map TOKENIZER.json\n");
        return 2;
    }
    pl_status status = pl_tokenizer_load(&tok, argv[1], &err);
    if (status == PL_OK)
        status = pl_token_map_build(&map, tok, &err);
    pl_tokenizer_close(tok);
    if (status != PL_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (size_t i = 0; i < map.size; i++)
        for (int b = 0; b < 4; b++)
            putchar((int)(map.map[i] >> 8 * b & 255));
    fprintf(stderr, "%u\n", map.classes);
    pl_token_map_close(&map);
    return fflush(stdout) == 0 ? 0 : 1;
}
