/* The pass over all scale bytes: which tensors are wide, at any offset, and its progress. */
#include "checkpoint/fixture.h"

#include "base/log.h"

static bool is_wide(const pl_checkpoint *c, const char *name)
{
    pl_mat m;
    pl_error err = {0};
    assert_int_equal(pl_checkpoint_mat(c, name, &m, &err), PL_OK);
    return m.wide;
}

/* Standard error of what runs between the two calls, in text. */
static int saved;
static FILE *caught;

static void catch_stderr(void)
{
    caught = tmpfile();
    assert_non_null(caught);
    saved = dup(2);
    dup2(fileno(caught), 2);
}

static void give_stderr_back(char *text, size_t room)
{
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    rewind(caught);
    text[fread(text, 1, room - 1, caught)] = 0;
    fclose(caught);
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, part)); p++)
        n++;
    return n;
}

static void wide_tensors_are_marked_and_logged_once(void **state)
{
    (void)state;
    /* the exact ranges: FP8 18..246, FP4 10..252 */
    static const struct {
        const char *name;
        unsigned char byte;
        bool wide;
    } cases[] = {{"layers.0.attn.wq_a", 17, true},          {"layers.0.attn.wq_b", 18, false},
                 {"layers.0.attn.wkv", 246, false},         {"layers.0.attn.wo_b", 247, true},
                 {"layers.0.ffn.experts.0.w1", 9, true},    {"layers.0.ffn.experts.0.w2", 10, false},
                 {"layers.0.ffn.experts.0.w3", 252, false}, {"layers.0.ffn.experts.1.w1", 253, true},
                 {"layers.0.ffn.experts.1.w2", 0, true},    {"layers.0.ffn.experts.1.w3", 17, false}};
    enum { CASES = sizeof cases / sizeof *cases };
    fx f;
    fx_small(&f);
    for (int i = 0; i < CASES; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s.scale", cases[i].name);
        fx_tensor *t = fx_find(&f, name);
        t->data[t->bytes - 1] = cases[i].byte;
    }
    fx_write(&f, NULL);
    static char text[16384];
    catch_stderr();
    pl_checkpoint *c = NULL;
    pl_error err = {0};
    pl_status status = pl_checkpoint_open(&c, f.dir, 2, NULL, NULL, &err);
    give_stderr_back(text, sizeof text);
    assert_int_equal(status, PL_OK);
    for (int i = 0; i < CASES; i++) {
        char name[80];
        snprintf(name, sizeof name, "tensor %s.scale:", cases[i].name);
        if (is_wide(c, cases[i].name) != cases[i].wide)
            fail_msg("%s with byte %d", cases[i].name, cases[i].byte);
        assert_int_equal(count(text, name), cases[i].wide);
    }
    assert_false(is_wide(c, "layers.1.attn.wq_a"));
    pl_checkpoint_close(c);
    fx_free(&f);
}

static void many_wide_tensors_are_counted(void **state)
{
    (void)state;
    fx f;
    fx_small(&f);
    int n = 0;
    for (size_t i = 0; i < f.tensors; i++)
        if (strstr(f.tensor[i].name, "experts") && strstr(f.tensor[i].name, ".scale")) {
            f.tensor[i].data[0] = 1;
            n++;
        }
    fx_write(&f, NULL);
    static char text[16384];
    char rest[64];
    catch_stderr();
    pl_checkpoint *c = NULL;
    pl_error err = {0};
    pl_status status = pl_checkpoint_open(&c, f.dir, 1, NULL, NULL, &err);
    give_stderr_back(text, sizeof text);
    assert_int_equal(status, PL_OK);
    assert_int_equal(count(text, "outside the exact range"), 16);
    snprintf(rest, sizeof rest, "%d more tensors", n - 16);
    assert_int_equal(count(text, rest), 1);
    pl_checkpoint_close(c);
    fx_free(&f);
}

/* Every offset in a tensor is looked at, in its last bytes too. */
static void every_byte_is_seen(void **state)
{
    (void)state;
    fx f;
    fx_small(&f);
    fx_tensor *t = fx_find(&f, "layers.1.engram.embed.scale"); /* 68 bytes: four vectors and four more */
    assert_int_equal(t->bytes, 68);
    for (size_t i = 0; i < t->bytes; i++) {
        char at[32];
        unsigned char kept = t->data[i];
        t->data[i] = 255;
        fx_write(&f, NULL);
        snprintf(at, sizeof at, "at byte %zu", i);
        fx_refused(&f, PL_EFORMAT, "layers.1.engram.embed.scale", at, NULL);
        t->data[i] = kept;
    }
    fx_free(&f);
}

typedef struct progress {
    uint64_t last, total;
    int calls;
} progress;

static void on_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    progress *p = arg;
    assert_string_equal(what, "checking scale bytes");
    assert_true(done > p->last && done <= total);
    p->last = done;
    p->total = total;
    p->calls++;
}

static void progress_ends_at_the_total(void **state)
{
    (void)state;
    progress p = {0};
    pl_error err = {0};
    pl_checkpoint *c;
    assert_int_equal(pl_checkpoint_open(&c, "models/nano", 3, on_progress, &p, &err), PL_OK);
    assert_int_equal(p.last, p.total);
    assert_int_equal(p.total, 620628);
    assert_true(p.calls >= 1);
    pl_checkpoint_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_tensors_are_marked_and_logged_once),
        cmocka_unit_test(many_wide_tensors_are_counted),
        cmocka_unit_test(every_byte_is_seen),
        cmocka_unit_test(progress_ends_at_the_total),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
