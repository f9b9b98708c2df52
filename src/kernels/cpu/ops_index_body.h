/* Index scores of sixteen keys. Included once an instruction set by ops_body.h.
 *
 * Twice an E2M1 value is an integer of at most 12, so a block of 32 products sums to an integer of at most
 * 32 * 144 = 4608: exact in integers and in float32 alike, in any order. The block sums, times the two powers of two,
 * are then added in block order by one fused multiply-add each: that is the order of this operation. */

static void op_key_tile(unsigned char *code, float *scale, const unsigned char *const key[PL__KEY_LANES], int blocks)
{
    enum { BLOCK_BYTES = 16, QUAD_ROW = 4 * PL__KEY_LANES };
    for (int b = 0; b < blocks; b++) {
        for (int l = 0; l < PL__KEY_LANES; l++) {
            unsigned char *to = code + (size_t)b * 8 * QUAD_ROW + (size_t)l * 4;
            const unsigned char *from = key[l] + (size_t)b * BLOCK_BYTES;
            for (int w = 0; w < 4; w++)
                memcpy(to + (size_t)w * 2 * QUAD_ROW, from + (size_t)w * 4, 4);
            scale[b * PL__KEY_LANES + l] = power_of_two(key[l][(size_t)blocks * BLOCK_BYTES + (size_t)b]);
        }
    }
    /* each word of four packed bytes is now in the place of its even quad: spread it to the even and the odd one */
    for (int w = 0; w < blocks * 4; w++)
        v16_spread_e2m1(code + (size_t)w * 2 * QUAD_ROW);
}

/* Some heads side by side, so that a key's bytes are loaded once for them; their terms are added in head order. */
PL__IN v16 index_heads(v16 sum, const pl__index_query *q, const pl__key_tile *tile, int h, int heads)
{
    v16 dot[4], whole[4], zero = v16_zero();
    size_t blocks = (size_t)q->blocks, at = (size_t)h * blocks;
    for (int i = 0; i < heads; i++)
        dot[i] = zero;
    for (size_t b = 0; b < blocks; b++) {
        v16_idot(whole, heads, tile->code + b * 8 * 64, q->code + (at + b) * 32, blocks * 32, q->bias + at + b, blocks);
        v16 scale = v16_load(tile->scale + b * 16);
        for (int i = 0; i < heads; i++)
            dot[i] = v16_fma(whole[i], v16_mul(v16_set1(q->scale[at + (size_t)i * blocks + b]), scale), dot[i]);
    }
    for (int i = 0; i < heads; i++) {
        v16 term = v16_mul(v16_max(v16_round_bf(dot[i]), zero), v16_set1(q->weight[h + i]));
        sum = v16_add(sum, v16_round_bf(term));
    }
    return sum;
}

static void op_index_tile(pl_bf16 *score, const pl__index_query *q, const pl__key_tile *tile)
{
    v16 sum = v16_zero();
    int h = 0;
    for (; h + PL__TI <= q->heads; h += PL__TI)
        sum = index_heads(sum, q, tile, h, PL__TI);
    for (; h < q->heads; h++)
        sum = index_heads(sum, q, tile, h, 1);
    v16_store_bf(score, sum);
}
