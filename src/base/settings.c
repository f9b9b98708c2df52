/* Reading settings from flags and environment. The texts made from the table are in settings_text.c. */
#include "base/settings.h"

#include "base/log.h"
#include "base/num.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENV_PREFIX "PACELINE_"
enum { FORMS_CAP = 512, SHOWN = 60 };

/* A refused value is shown in the message, cut when it is long. */
static pl_status refuse(const pl_setting *s, const char *text, pl_setting_source source, const char *expected,
                        pl_error *err)
{
    char variable[96] = "", from[128] = "";
    if (source == PL_FROM_ENV) {
        pl_setting_variable(s, variable, sizeof variable);
        snprintf(from, sizeof from, " (from %s)", variable);
    }
    return pl_fail_param(err, PL_EINVAL, s->name, "--%s%s: %s expected, found \"%.*s\"%s", s->name, from, expected,
                         SHOWN, text, strlen(text) > SHOWN ? "..." : "");
}

static pl_status malformed(const pl_setting *s, const char *text, pl_setting_source source, pl_error *err)
{
    pl_buf forms;
    pl_buf_init(&forms, FORMS_CAP, "accepted forms");
    pl_status status = pl_setting_forms(s, &forms, err);
    if (status == PL_OK)
        status = refuse(s, text, source, forms.data, err);
    pl_buf_free(&forms);
    return status;
}

pl_status pl_set_refuse(const pl_settings *settings, pl_setting_id id, const char *expected, pl_error *err)
{
    return refuse(&pl_setting_table[id], pl_set_text(settings, id), settings->value[id].source, expected, err);
}

static bool parse_switch(const char *text, int64_t *out)
{
    static const char *const words[2][4] = {{"off", "false", "no", "0"}, {"on", "true", "yes", "1"}};
    for (int on = 0; on < 2; on++)
        for (int i = 0; i < 4; i++)
            if (strcasecmp(text, words[on][i]) == 0) {
                *out = on;
                return true;
            }
    return false;
}

static bool parse_choice(const char *choices, const char *text, int64_t *out)
{
    size_t n = strlen(text);
    int64_t index = 0;
    for (const char *at = choices; *at; index++) {
        size_t len = strcspn(at, "|");
        if (len == n && memcmp(at, text, n) == 0) {
            *out = index;
            return true;
        }
        at += len + (at[len] == '|');
    }
    return false;
}

/* Only the form is checked here; the ids themselves are read by pl_ids_parse when they are needed. */
static bool looks_like_ids(const char *text)
{
    if (text[0] == '@')
        return text[1] != '\0';
    if (strcmp(text, "-") == 0)
        return true;
    return isdigit((unsigned char)text[0]) && strspn(text, "0123456789, \t\n") == strlen(text);
}

static bool parse_value(const pl_setting *s, const char *text, pl_setting_value *value)
{
    if (s->word && strcmp(text, s->word) == 0) {
        value->integer = s->word_value;
        value->real = (double)s->word_value;
        return true;
    }
    switch (s->kind) {
    case PL_KIND_SWITCH: return parse_switch(text, &value->integer);
    case PL_KIND_INT: return pl_parse_i64(text, s->imin, s->imax, &value->integer);
    case PL_KIND_REAL:
        return pl_parse_f64(text, s->fmin, s->fmax, &value->real) &&
               !(s->open && (float)value->real <= (float)s->fmin); /* it is used as a float32: 1e-50 is 0 */
    case PL_KIND_TEXT: return *text != '\0' && !(s->named && strcmp(text, "-") == 0);
    case PL_KIND_CHOICE: return parse_choice(s->choices, text, &value->integer);
    case PL_KIND_IDS: return looks_like_ids(text);
    }
    return false;
}

static pl_status set(pl_settings *settings, const pl_setting *s, const char *text, pl_setting_source source,
                     pl_error *err)
{
    pl_setting_value value = {.text = text, .source = source};
    if (!parse_value(s, text, &value))
        return malformed(s, text, source, err);
    settings->value[s->id] = value;
    return PL_OK;
}

static pl_status set_defaults(pl_settings *settings, pl_error *err)
{
    for (int i = 0; i < PL_SET_COUNT; i++) {
        const pl_setting *s = &pl_setting_table[i];
        if (s->commands & settings->command->bit && s->standard)
            PL_TRY(set(settings, s, s->standard, PL_FROM_DEFAULT, err));
    }
    return PL_OK;
}

/* Does NAME of "PACELINE_NAME=..." spell this setting? */
static bool spells(const pl_setting *s, const char *name, size_t n)
{
    if (strlen(s->name) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((s->name[i] == '-' ? '_' : toupper((unsigned char)s->name[i])) != name[i])
            return false;
    return true;
}

static pl_status read_env(pl_settings *settings, char *const *env, pl_error *err)
{
    size_t prefix = strlen(ENV_PREFIX);
    for (; env && *env; env++) {
        if (strncmp(*env, ENV_PREFIX, prefix) != 0)
            continue;
        const char *name = *env + prefix;
        const char *equals = strchr(name, '=');
        if (!equals)
            continue;
        bool known = false;
        for (int i = 0; i < PL_SET_COUNT; i++) {
            const pl_setting *s = &pl_setting_table[i];
            if (!s->env || !spells(s, name, (size_t)(equals - name)))
                continue;
            known = true;
            if (s->commands & settings->command->bit)
                PL_TRY(set(settings, s, equals + 1, PL_FROM_ENV, err));
        }
        if (!known)
            pl_log(PL_LOG_WARNING,
                   "%.*s is no setting of Paceline and has no effect; `paceline help environment` lists them",
                   (int)(equals - *env), *env);
    }
    return PL_OK;
}

/* The row that --name (n bytes) or --no-name means for this command; *negated tells which. */
static const pl_setting *find_long(const pl_settings *settings, const char *name, size_t n, bool *negated)
{
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1) {
            if (n <= 3 || memcmp(name, "no-", 3) != 0)
                return NULL;
            name += 3, n -= 3;
        }
        for (int i = 0; i < PL_SET_COUNT; i++) {
            const pl_setting *s = &pl_setting_table[i];
            if (!(s->commands & settings->command->bit) || strlen(s->name) != n || memcmp(s->name, name, n) != 0)
                continue;
            if (pass == 1 && s->kind != PL_KIND_SWITCH)
                continue;
            *negated = pass == 1;
            return s;
        }
    }
    return NULL;
}

static const pl_setting *find_letter(const pl_settings *settings, char letter)
{
    for (int i = 0; i < PL_SET_COUNT; i++) {
        const pl_setting *s = &pl_setting_table[i];
        if (s->letter && s->letter == letter && s->commands & settings->command->bit)
            return s;
    }
    return NULL;
}

static pl_status unknown_flag(const pl_settings *settings, const char *word, pl_error *err)
{
    int n = (int)strcspn(word, "=");
    n = n > SHOWN ? SHOWN : n;
    return pl_fail_param(err, PL_EINVAL, "", "`paceline %s` takes no %.*s; `paceline help %s` lists what it takes",
                         settings->command->name, n, word, settings->command->name);
}

/* Is this word behind a single dash the name of a setting? "-max-tokens" must not be read as -m with "ax-tokens". */
static bool names_setting(const pl_settings *settings, const char *word)
{
    bool negated;
    size_t n = strcspn(word, "=");
    return n > 1 && (find_long(settings, word, n, &negated) || (n == 4 && memcmp(word, "help", n) == 0) ||
                     (n == 7 && memcmp(word, "version", n) == 0));
}

/* One flag at argv[*at], which moves past the words it used. */
static pl_status read_flag(pl_settings *settings, int argc, char *const *argv, int *at, pl_error *err)
{
    const char *word = argv[(*at)++];
    const char *value = NULL;
    bool negated = false;
    const pl_setting *s;
    if (word[1] == '-') {
        value = strchr(word, '=');
        size_t n = value ? (size_t)(value - word) - 2 : strlen(word) - 2;
        value = value ? value + 1 : NULL;
        s = find_long(settings, word + 2, n, &negated);
    } else if (names_setting(settings, word + 1)) {
        int n = (int)strcspn(word + 1, "=");
        return pl_fail(err, PL_EINVAL, "two dashes expected before a name of more than a letter: --%.*s, found -%.*s",
                       n, word + 1, n, word + 1);
    } else {
        s = find_letter(settings, word[1]);
        if (s && word[2])
            value = word + 2 + (word[2] == '=');
    }
    if (!s)
        return unknown_flag(settings, word, err);
    if (s->kind == PL_KIND_SWITCH && !(value && !negated)) {
        if (value)
            return pl_fail_param(err, PL_EINVAL, s->name, "--no-%s takes no value", s->name);
        return set(settings, s, negated ? "off" : "on", PL_FROM_FLAG, err);
    }
    if (!value && *at < argc)
        value = argv[(*at)++];
    if (!value)
        return pl_fail_param(err, PL_EINVAL, s->name, "--%s: a value (%s) must follow", s->name, s->arg);
    return set(settings, s, value, PL_FROM_FLAG, err);
}

/* --help and --version win over everything else, so that a start with mistakes in it can still be asked for help. */
static bool asks_for_text(pl_settings *settings, int argc, char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        settings->help |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
        settings->version |= strcmp(argv[i], "--version") == 0;
    }
    return settings->help || settings->version;
}

pl_status pl_settings_parse(pl_settings *settings, const pl_command *command, int argc, char *const *argv,
                            char *const *env, pl_error *err)
{
    *settings = (pl_settings){.command = command};
    if (asks_for_text(settings, argc, argv))
        return PL_OK;
    PL_TRY(set_defaults(settings, err));
    PL_TRY(read_env(settings, env, err));
    bool words_only = false;
    for (int at = 0; at < argc;) {
        const char *word = argv[at];
        if (!words_only && strcmp(word, "--") == 0) {
            words_only = true;
            at++;
        } else if (!words_only && word[0] == '-' && word[1]) {
            PL_TRY(read_flag(settings, argc, argv, &at, err));
        } else if (settings->args == command->args_max || settings->args == PL_MAX_ARGS) {
            return pl_fail(err, PL_EINVAL,
                           "`paceline %s` does not know what to do with \"%.*s\"; usage: paceline %s %s", command->name,
                           SHOWN, word, command->name, command->usage);
        } else {
            settings->arg[settings->args++] = word;
            at++;
        }
    }
    if (settings->args < command->args_min)
        return pl_fail(err, PL_EINVAL, "usage: paceline %s %s", command->name, command->usage);
    return PL_OK;
}

bool pl_set_given(const pl_settings *settings, pl_setting_id id)
{
    return settings->value[id].source != PL_FROM_DEFAULT;
}

const char *pl_set_text(const pl_settings *settings, pl_setting_id id)
{
    const char *text = settings->value[id].text;
    return text ? text : "";
}

int64_t pl_set_int(const pl_settings *settings, pl_setting_id id)
{
    return settings->value[id].integer;
}

double pl_set_real(const pl_settings *settings, pl_setting_id id)
{
    return settings->value[id].real;
}

bool pl_set_on(const pl_settings *settings, pl_setting_id id)
{
    return settings->value[id].integer != 0;
}
