/* Settings: where a value comes from, and that a malformed one names itself, its text and the accepted forms. */
#include "base/check.h"
#include "base/settings.h"

/* Parse words given as one NULL-terminated list. */
static pl_status parse(pl_settings *s, const char *command, char *const *words, char *const *env, pl_error *err)
{
    int n = 0;
    while (words[n])
        n++;
    const pl_command *c = pl_command_find(command);
    assert_non_null(c);
    return pl_settings_parse(s, c, n, words, env, err);
}

#define WORDS(...) ((char *[]){__VA_ARGS__, NULL})
static char *const NONE[] = {NULL};

static void flag_wins_over_environment_over_default(void **state)
{
    (void)state;
    pl_settings s;
    pl_error err;
    assert_int_equal(parse(&s, "serve", NONE, NONE, &err), PL_OK);
    assert_int_equal(pl_set_int(&s, PL_SET_PORT), 8080);
    assert_false(pl_set_given(&s, PL_SET_PORT));
    assert_int_equal(parse(&s, "serve", NONE, WORDS("PACELINE_PORT=99", "HOME=/x"), &err), PL_OK);
    assert_int_equal(pl_set_int(&s, PL_SET_PORT), 99);
    assert_true(pl_set_given(&s, PL_SET_PORT));
    assert_int_equal(parse(&s, "serve", WORDS("--port", "0"), WORDS("PACELINE_PORT=99"), &err), PL_OK);
    assert_int_equal(pl_set_int(&s, PL_SET_PORT), 0);
    assert_int_equal(parse(&s, "serve", WORDS("--port=1", "--port=2"), NONE, &err), PL_OK);
    assert_int_equal(pl_set_int(&s, PL_SET_PORT), 2);
}

static void forms_of_a_flag(void **state)
{
    (void)state;
    pl_settings s;
    pl_error err;
    assert_int_equal(parse(&s, "run", WORDS("-m", "a", "--temperature=0.5", "--top-k", "-1", "hi there"), NONE, &err),
                     PL_OK);
    assert_string_equal(pl_set_text(&s, PL_SET_MODEL), "a");
    assert_true(pl_set_real(&s, PL_SET_TEMPERATURE) == 0.5);
    assert_int_equal(pl_set_int(&s, PL_SET_TOP_K), -1);
    assert_int_equal(s.args, 1);
    assert_string_equal(s.arg[0], "hi there");
    assert_int_equal(parse(&s, "run", WORDS("-mb", "--", "--raw"), NONE, &err), PL_OK);
    assert_string_equal(pl_set_text(&s, PL_SET_MODEL), "b");
    assert_string_equal(s.arg[0], "--raw");
    assert_false(pl_set_on(&s, PL_SET_RAW));
    assert_int_equal(parse(&s, "run", WORDS("-"), NONE, &err), PL_OK);
    assert_string_equal(s.arg[0], "-");
}

static void switches(void **state)
{
    (void)state;
    pl_settings s;
    pl_error err;
    assert_int_equal(parse(&s, "run", WORDS("--no-drafts", "--raw"), NONE, &err), PL_OK);
    assert_false(pl_set_on(&s, PL_SET_DRAFTS));
    assert_true(pl_set_on(&s, PL_SET_RAW));
    assert_false(pl_set_given(&s, PL_SET_THINKING));
    assert_int_equal(parse(&s, "run", WORDS("--drafts=no"), WORDS("PACELINE_THINKING=Off"), &err), PL_OK);
    assert_false(pl_set_on(&s, PL_SET_DRAFTS));
    assert_true(pl_set_given(&s, PL_SET_THINKING));
    assert_false(pl_set_on(&s, PL_SET_THINKING));
    assert_fails(PL_EINVAL, &err, parse(&s, "run", WORDS("--no-drafts=on"), NONE, &err));
    assert_fails(PL_EINVAL, &err, parse(&s, "run", WORDS("--drafts=maybe"), NONE, &err));
    assert_fails(PL_EINVAL, &err, parse(&s, "run", WORDS("--no-temperature", "1"), NONE, &err));
}

/* Each refusal names the setting, shows the text, tells what would do. */
static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *command, *flag, *value, *param, *forms;
    } bad[] = {
        {"serve", "--port", "65536", "port", "a whole number from 0 to 65535"},
        {"serve", "--port", "80x", "port", "a whole number from 0 to 65535"},
        {"serve", "--port", "", "port", "a whole number from 0 to 65535"},
        {"serve", "--threads", "0", "threads", "or the word auto"},
        {"serve", "--host", "", "host", "text that is not empty"},
        {"serve", "--log", "loud", "log", "one of error, warning, info, debug"},
        {"run", "--temperature", "2.01", "temperature", "a number from 0 to 2"},
        {"run", "--temperature", "nan", "temperature", "a number from 0 to 2"},
        {"run", "--top-p", "0", "top-p", "a number above 0, at most 1"},
        {"run", "--min-p", "-0.1", "min-p", "a number from 0 to 1"},
        {"run", "--top-k", "-2", "top-k", "a whole number from -1"},
        {"run", "--seed", "9223372036854775808", "seed", "a whole number of 64 bits"},
        {"run", "--ids", "1,x", "ids", "token ids separated by commas"},
        {"logits", "--cache-dir", "-", "cache-dir", "the name of a file or folder"},
        {"trace", "--out", "-", "out", "the name of a file or folder"},
        {"run", "--ids", "@", "ids", "token ids separated by commas"},
        {"run", "--max-tokens", "0", "max-tokens", "a whole number from 1"},
        {"drafts", "--anchor", "-1", "anchor", "a whole number from 0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pl_settings s;
        pl_error err;
        char shown[64];
        assert_fails(PL_EINVAL, &err,
                     parse(&s, bad[i].command, WORDS((char *)bad[i].flag, (char *)bad[i].value), NONE, &err));
        assert_string_equal(err.param, bad[i].param);
        snprintf(shown, sizeof shown, "found \"%s\"", bad[i].value);
        assert_non_null(strstr(err.message, shown));
        assert_non_null(strstr(err.message, bad[i].flag));
        assert_non_null(strstr(err.message, bad[i].forms));
    }
}

/* "-max-tokens" is neither -m with the folder "ax-tokens" nor left to guess. */
static void one_dash_before_a_name(void **state)
{
    (void)state;
    static const char *const words[] = {"-max-tokens", "-max-tokens=3", "-model", "-min-p=0.1",
                                        "-raw",        "-no-raw",       "-help"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        pl_settings s;
        pl_error err;
        char meant[32];
        assert_fails(PL_EINVAL, &err, parse(&s, "run", WORDS((char *)words[i], "3", "x"), NONE, &err));
        snprintf(meant, sizeof meant, "-%.*s,", (int)strcspn(words[i], "="), words[i]);
        assert_non_null(strstr(err.message, meant));
    }
    pl_settings s;
    pl_error err;
    assert_int_equal(parse(&s, "logits", WORDS("-max-tokens"), NONE, &err), PL_OK); /* no setting of this command */
    assert_string_equal(pl_set_text(&s, PL_SET_MODEL), "ax-tokens");
}

static void a_late_refusal_names_the_variable(void **state)
{
    (void)state;
    pl_settings s;
    pl_error err;
    assert_int_equal(parse(&s, "run", NONE, WORDS("PACELINE_SEED_SALT=x"), &err), PL_OK);
    assert_fails(PL_EINVAL, &err, pl_set_refuse(&s, PL_SET_SEED_SALT, "something else", &err));
    assert_string_equal(err.message, "--seed-salt (from PACELINE_SEED_SALT): something else expected, found \"x\"");
    assert_string_equal(err.param, "seed-salt");
}

static void refuses_what_it_does_not_know(void **state)
{
    (void)state;
    pl_settings s;
    pl_error err;
    assert_fails(PL_EINVAL, &err, parse(&s, "serve", WORDS("--bogus"), NONE, &err));
    assert_non_null(strstr(err.message, "--bogus"));
    assert_fails(PL_EINVAL, &err, parse(&s, "serve", WORDS("--raw"), NONE, &err)); /* another command's */
    assert_fails(PL_EINVAL, &err, parse(&s, "serve", WORDS("-x"), NONE, &err));
    assert_fails(PL_EINVAL, &err, parse(&s, "serve", WORDS("word"), NONE, &err));
    assert_fails(PL_EINVAL, &err, parse(&s, "serve", WORDS("--port"), NONE, &err));
    assert_string_equal(err.param, "port");
    assert_fails(PL_EINVAL, &err, parse(&s, "run", WORDS("one", "two"), NONE, &err));
    assert_null(pl_command_find("nothing"));
}

static void environment_of_other_commands_and_unknown_names(void **state)
{
    (void)state;
    pl_settings s;
    pl_error err;
    /* PORT is malformed, but `run` does not take it; NOTHING is only warned about; SEED may not come from there. */
    assert_int_equal(parse(&s, "run", NONE, WORDS("PACELINE_PORT=x", "PACELINE_NOTHING=1", "PACELINE_SEED=4"), &err),
                     PL_OK);
    assert_false(pl_set_given(&s, PL_SET_SEED));
    assert_fails(PL_EINVAL, &err, parse(&s, "run", NONE, WORDS("PACELINE_TOP_P=7"), &err));
    assert_non_null(strstr(err.message, "PACELINE_TOP_P"));
    assert_int_equal(parse(&s, "run", NONE, NULL, &err), PL_OK);
}

static void help_wins(void **state)
{
    (void)state;
    pl_settings s;
    pl_error err;
    assert_int_equal(parse(&s, "serve", WORDS("--bogus", "--help"), NONE, &err), PL_OK);
    assert_true(s.help);
    assert_int_equal(parse(&s, "serve", WORDS("--version"), WORDS("PACELINE_PORT=x"), &err), PL_OK);
    assert_true(s.version);
    assert_int_equal(parse(&s, "run", WORDS("--", "--help"), NONE, &err), PL_OK);
    assert_false(s.help);
}

/* The table itself: rows in id order, a flag meant by one row a command, defaults that pass their own check. */
static void the_table_is_sound(void **state)
{
    (void)state;
    for (int i = 0; i < PL_SET_COUNT; i++) {
        const pl_setting *s = &pl_setting_table[i];
        assert_int_equal(s->id, i);
        assert_true(s->commands != 0);
        assert_true(s->kind == PL_KIND_SWITCH || s->arg != NULL);
        assert_true(s->help && s->help[0] && s->help[strlen(s->help) - 1] != '.');
        for (int k = 0; k < i; k++) {
            const pl_setting *o = &pl_setting_table[k];
            if (!(s->commands & o->commands))
                continue;
            assert_string_not_equal(s->name, o->name);
            assert_true(!s->letter || s->letter != o->letter);
        }
    }
    for (const pl_command *c = pl_command_table; c->name; c++) {
        pl_settings s;
        pl_error err;
        if (c->args_min == 0)
            assert_int_equal(pl_settings_parse(&s, c, 0, NONE, NULL, &err), PL_OK);
        pl_buf text;
        pl_buf_init(&text, 1 << 16, "help");
        assert_int_equal(pl_settings_help(c, &text, &err), PL_OK);
        for (int i = 0; i < PL_SET_COUNT; i++)
            if (pl_setting_table[i].commands & c->bit)
                assert_non_null(strstr(text.data, pl_setting_table[i].name));
        pl_buf_free(&text);
    }
}

static void the_report_tells_where_values_come_from(void **state)
{
    (void)state;
    pl_settings s;
    pl_error err;
    pl_buf text;
    pl_buf_init(&text, 1 << 16, "report");
    assert_int_equal(parse(&s, "serve", WORDS("--host", "0.0.0.0"), WORDS("PACELINE_THREADS=3"), &err), PL_OK);
    assert_int_equal(pl_settings_report(&s, &text, &err), PL_OK);
    assert_non_null(strstr(text.data, "host           0.0.0.0              flag\n"));
    assert_non_null(strstr(text.data, "threads        3                    environment\n"));
    assert_non_null(strstr(text.data, "port           8080                 default\n"));
    pl_buf_free(&text);
}

static void id_lists(void **state)
{
    (void)state;
    int32_t *ids;
    size_t n;
    pl_error err;
    assert_int_equal(pl_ids_parse(" 1, 22 ,2147483647\n", &ids, &n, &err), PL_OK);
    assert_int_equal(n, 3);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 22);
    assert_int_equal(ids[2], INT32_MAX);
    free(ids);
    static const char *const bad[] = {
        "", ",", "1,", ",1", "1,,2", "1 2", "-1", "1.5", "2147483648", "99999999999999999999999", "x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(PL_EINVAL, &err, pl_ids_parse(bad[i], &ids, &n, &err));
        assert_true(err.offset >= 0);
        assert_null(ids);
    }
    assert_fails(PL_EINVAL, &err, pl_ids_parse("1,2;3", &ids, &n, &err));
    assert_string_equal(err.message, "--ids: a comma expected at byte 3, found ';'");
    assert_fails(PL_EINVAL, &err, pl_ids_parse("@/dev/null", &ids, &n, &err));
    assert_string_equal(err.message, "/dev/null: an id expected at byte 0, found the end");
    assert_fails(PL_ENOTFOUND, &err, pl_ids_parse("@/nonexistent", &ids, &n, &err));
    char path[64];
    make_folder(path);
    char file[96];
    snprintf(file, sizeof file, "@%s/ids", path);
    FILE *f = fopen(file + 1, "w");
    assert_non_null(f);
    fputs("5,\n6\n", f);
    fclose(f);
    assert_int_equal(pl_ids_parse(file, &ids, &n, &err), PL_OK);
    assert_int_equal(n, 2);
    assert_int_equal(ids[1], 6);
    free(ids);
    unlink(file + 1);
    rmdir(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flag_wins_over_environment_over_default),
        cmocka_unit_test(forms_of_a_flag),
        cmocka_unit_test(switches),
        cmocka_unit_test(refusals),
        cmocka_unit_test(one_dash_before_a_name),
        cmocka_unit_test(a_late_refusal_names_the_variable),
        cmocka_unit_test(refuses_what_it_does_not_know),
        cmocka_unit_test(environment_of_other_commands_and_unknown_names),
        cmocka_unit_test(help_wins),
        cmocka_unit_test(the_table_is_sound),
        cmocka_unit_test(the_report_tells_where_values_come_from),
        cmocka_unit_test(id_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
