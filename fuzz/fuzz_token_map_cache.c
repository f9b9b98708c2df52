/* A cached token map of any bytes, as it is and with its header and check sum made right (else no input would pass
 * them): refused, or a map whose classes are in range and which writes the same bytes again. */
#include <string.h>

#include "base/sha256.h"
#include "text/token_map_cache.h"

static const unsigned char tokenizer[32] = {7};

static void check(const unsigned char *file, size_t len, size_t ids)
{
    pl_token_map map;
    pl_error err = {0};
    pl_status status = pl__token_map_read(&map, file, len, tokenizer, ids, &err);
    if (status != PL_OK) {
        if (status != PL_EFORMAT || map.map || !err.message[0])
            __builtin_trap();
        return;
    }
    pl_buf again;
    pl_buf_init(&again, 1 << 24, "file");
    for (size_t i = 0; i < map.size; i++)
        if (map.map[i] >= map.classes)
            __builtin_trap();
    if (map.size != ids || pl__token_map_write(&map, tokenizer, &again, &err) != PL_OK || again.len != len ||
        memcmp(again.data, file, len) != 0)
        __builtin_trap();
    pl_buf_free(&again);
    pl_token_map_close(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size, size >= 96 ? (size - 96) / 4 : 0);
    if (size < 4 || size > 1 << 16)
        return 0;
    /* The first word is the count of classes, each byte behind it a class. */
    uint32_t classes[1 << 16];
    size_t ids = size - 4;
    for (size_t i = 0; i < ids; i++)
        classes[i] = data[4 + i];
    pl_token_map map = {.map = classes, .size = ids};
    memcpy(&map.classes, data, 4);
    map.classes &= 0x1ff;
    pl_buf file;
    pl_error err;
    pl_buf_init(&file, 1 << 24, "file");
    if (pl__token_map_write(&map, tokenizer, &file, &err) != PL_OK)
        __builtin_trap();
    check((const unsigned char *)file.data, file.len, ids);
    pl_buf_free(&file);
    return 0;
}
