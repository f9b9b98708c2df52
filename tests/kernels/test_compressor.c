/* Compressor: latents of the reference, and what entry_put and key_put store. */
#include "ops_fixture.h"

static void latents_match(pl_kernels *k)
{
    enum { T = 9, IN = 96, D = 64, G = 4, LENGTH = 20 };
    pl_bf16 *x = unit_bf16("comp.x.bf16", T * IN), *norm = unit_bf16("comp.norm.bf16", D);
    pl_bf16 *wkv = unit_bf16("comp.wkv.bf16", D * IN), *wgate = unit_bf16("comp.wgate.bf16", D * IN);
    pl_bf16 *two = unit_bf16("comp.latent2.bf16", G * D), *one = unit_bf16("comp.latent1.bf16", T * D);
    pl_mat kv_mat = {.format = PL_FMT_BF16, .out = D, .in = IN, .data = (unsigned char *)wkv};
    pl_mat gate_mat = {.format = PL_FMT_BF16, .out = D, .in = IN, .data = (unsigned char *)wgate};
    float kv[T * D], gate[T * D];
    pl_bf16 lat[T * D];
    void *p;
    pl_error err;
    pl_ring pairs = {.length = LENGTH, .row_bytes = 2 * D * sizeof(float)};
    assert_int_equal(k->reserve(k, LENGTH * pairs.row_bytes, "pairs", &p, &err), PL_OK);
    pairs.data = p;
    k->lin(k, kv, D, PL_OUT_F32, x, IN, &kv_mat, T);
    k->lin(k, gate, D, PL_OUT_F32, x, IN, &gate_mat, T);
    ops_launch l;
    launch_start(&l);
    launch_span(&l, 0, 0, T);
    k->pair_put(k, &pairs, kv, gate, D, &l.launch);
    int32_t slot[G] = {0}, index[G] = {0, 1, 2, 3};
    pl_groups groups = {.count = G, .ratio = 2, .slot = slot, .index = index};
    k->pair_latent(k, lat, &pairs, D, &groups);
    k->rmsnorm(k, lat, lat, norm, G, D, 1e-20f);
    bf_diff d2 = bf_compare(lat, two, G * D);
    k->lin(k, lat, D, PL_OUT_BF16, x, IN, &kv_mat, T);
    k->rmsnorm(k, lat, lat, norm, T, D, 1e-20f);
    bf_diff d1 = bf_compare(lat, one, T * D);
    print_message("%s: latents: ratio 2: %d of %d differ, ratio 1: %d of %d\n", k->name, d2.differ, G * D, d1.differ,
                  T * D);
    assert_true(d2.differ == 0 && d1.differ == 0);
    free(x), free(norm), free(wkv), free(wgate), free(two), free(one);
}

/* Entries and keys lie where kernels.h says, rotated at their group's first token, and the latent stays as it was. */
static void packed_rows_lie_in_their_pages(pl_kernels *k)
{
    enum { D = 64, KD = 32, ROPE = 32, PER = 3, PAGES = 5, SLOTS = 2, G = 4, EO = 7 };
    const size_t eb = pl_entry_bytes(D), kb = pl_key_bytes(KD), ko = EO + PER * eb + 2;
    const pl__vec *vec = pl__cpu_of(k)->vec;
    unsigned char *page[SLOTS * PAGES] = {0};
    size_t page_bytes = ko + PER * kb;
    int32_t slot[G] = {0, 1, 1, 1}, index[G] = {11, 2, 3, 4};
    pl_entries e = {.page = page, .pages = PAGES, .per_page = PER, .ratio = 2, .entry_offset = EO, .key_offset = ko};
    pl_groups groups = {.count = G, .ratio = 2, .slot = slot, .index = index};
    pl_bf16 lat[G * D], key[G * KD], kept[G * D];
    float freq[ROPE / 2];
    for (int i = 0; i < G * D; i++)
        lat[i] = kept[i] = pl_bf16_from_f32(rng_gauss());
    for (int i = 0; i < G * KD; i++)
        key[i] = pl_bf16_from_f32(rng_gauss());
    for (int i = 0; i < ROPE / 2; i++)
        freq[i] = 1.0f / (float)(1 + i * i);
    for (int g = 0; g < G; g++) {
        unsigned char **at = &page[slot[g] * PAGES + index[g] / PER];
        *at = *at ? *at : exact(page_bytes);
        memset(*at, 0xa5, page_bytes);
    }
    pl_rope rope = {.dims = ROPE, .freq = freq};
    k->entry_put(k, &e, lat, D, &rope, &groups);
    k->key_put(k, &e, key, KD, &rope, &groups);
    assert_memory_equal(lat, kept, sizeof lat);
    for (int g = 0; g < G; g++) {
        int32_t pos = 2 * index[g];
        unsigned char want[D];
        const unsigned char *at = page[slot[g] * PAGES + index[g] / PER];
        k->rope(k, lat + g * D, &pos, 1, 1, D, &rope, false);
        vec->round_q4e4(NULL, want, want + D / 2, lat + g * D, D);
        assert_memory_equal(at + EO + (size_t)(index[g] % PER) * eb, want, eb);
        k->rope(k, key + g * KD, &pos, 1, 1, KD, &rope, false);
        vec->round_q4e8(NULL, want, want + KD / 2, key + g * KD, KD);
        assert_memory_equal(at + ko + (size_t)(index[g] % PER) * kb, want, kb);
        for (int i = 0; i < EO; i++)
            assert_int_equal(at[i], 0xa5);
    }
    for (int i = 0; i < SLOTS * PAGES; i++)
        free(page[i]);
}

static void test_latents(void **state)
{
    (void)state;
    on_every_isa(latents_match);
}
static void test_pages(void **state)
{
    (void)state;
    on_every_isa(packed_rows_lie_in_their_pages);
}

int main(void)
{
    rng_start("compressor");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_latents), cmocka_unit_test(test_pages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
