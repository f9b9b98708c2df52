/* Texts made from the table of settings: accepted forms, --help, docs/environment.md, the start-up report. */
#include "base/settings.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FLAG_COLUMN = 24, CELL = 128, FORMS = 512 };

static pl_status whole_number(const pl_setting *s, pl_buf *out, pl_error *err)
{
    if (s->imin == INT64_MIN && s->imax == INT64_MAX)
        return pl_buf_adds(out, "a whole number of 64 bits", err);
    return pl_buf_addf(out, err, "a whole number from %" PRId64 " to %" PRId64, s->imin, s->imax);
}

static pl_status choices(const char *list, pl_buf *out, pl_error *err)
{
    PL_TRY(pl_buf_adds(out, "one of ", err));
    for (; *list; list++)
        PL_TRY(*list == '|' ? pl_buf_adds(out, ", ", err) : pl_buf_addc(out, *list, err));
    return PL_OK;
}

pl_status pl_setting_forms(const pl_setting *s, pl_buf *out, pl_error *err)
{
    switch (s->kind) {
    case PL_KIND_SWITCH: PL_TRY(pl_buf_adds(out, "on or off", err)); break;
    case PL_KIND_INT: PL_TRY(whole_number(s, out, err)); break;
    case PL_KIND_REAL:
        PL_TRY(pl_buf_addf(out, err, s->open ? "a number above %g, at most %g" : "a number from %g to %g", s->fmin,
                           s->fmax));
        break;
    case PL_KIND_TEXT:
        PL_TRY(pl_buf_adds(out, s->named ? "the name of a file or folder (- is none)" : "text that is not empty", err));
        break;
    case PL_KIND_CHOICE: PL_TRY(choices(s->choices, out, err)); break;
    case PL_KIND_IDS:
        PL_TRY(pl_buf_adds(out, "token ids separated by commas, @FILE, or - for standard input,", err));
        break;
    }
    if (s->word)
        PL_TRY(pl_buf_addf(out, err, " or the word %s", s->word));
    return PL_OK;
}

/* "-m, --model DIR"; a switch that is on by default is shown by the flag that turns it off. */
static void flag_text(const pl_setting *s, char *out, size_t size)
{
    char letter[8] = "";
    if (s->letter)
        snprintf(letter, sizeof letter, "-%c, ", s->letter);
    if (s->kind != PL_KIND_SWITCH)
        snprintf(out, size, "%s--%s %s", letter, s->name, s->arg);
    else if (!s->standard)
        snprintf(out, size, "%s--[no-]%s", letter, s->name);
    else
        snprintf(out, size, "%s--%s%s", letter, strcmp(s->standard, "on") == 0 ? "no-" : "", s->name);
}

void pl_setting_variable(const pl_setting *s, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "PACELINE_");
    for (const char *c = s->name; *c && n + 1 < size; c++)
        out[n++] = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    out[n] = '\0';
}

pl_status pl_settings_help(const pl_command *command, pl_buf *out, pl_error *err)
{
    PL_TRY(pl_buf_addf(out, err, "paceline %s: %s\n\nusage: paceline %s %s\n%s\n", command->name, command->summary,
                       command->name, command->usage, command->notes ? command->notes : ""));
    for (int i = 0; i < PL_SET_COUNT; i++) {
        const pl_setting *s = &pl_setting_table[i];
        if (!(s->commands & command->bit))
            continue;
        char flag[CELL];
        flag_text(s, flag, sizeof flag);
        PL_TRY(pl_buf_addf(out, err, "  %-*s %s", FLAG_COLUMN, flag, s->off_help ? s->off_help : s->help));
        if (s->kind != PL_KIND_SWITCH && s->standard)
            PL_TRY(pl_buf_addf(out, err, " (default %s)", s->standard));
        PL_TRY(pl_buf_addc(out, '\n', err));
    }
    PL_TRY(pl_buf_addf(out, err, "  %-*s this text\n  %-*s the program's version\n", FLAG_COLUMN, "--help", FLAG_COLUMN,
                       "--version"));
    return pl_buf_adds(out,
                       "\nEvery setting that has one may come from its variable PACELINE_NAME instead: "
                       "`paceline help environment`.\n",
                       err);
}

static pl_status doc_row(const pl_setting *s, pl_buf *out, pl_error *err)
{
    char variable[CELL], flag[CELL];
    pl_setting_variable(s, variable, sizeof variable);
    flag_text(s, flag, sizeof flag);
    PL_TRY(pl_buf_addf(out, err, "| `%s` | `%s` | ", variable, flag));
    PL_TRY(pl_setting_forms(s, out, err));
    PL_TRY(pl_buf_addf(out, err, " | %s | ", s->standard ? s->standard : ""));
    const char *comma = "";
    for (const pl_command *c = pl_command_table; c->name; c++)
        if (s->commands & c->bit) {
            PL_TRY(pl_buf_addf(out, err, "%s%s", comma, c->name));
            comma = ", ";
        }
    return pl_buf_addf(out, err, " | %s |\n", s->help);
}

pl_status pl_settings_doc(pl_buf *out, pl_error *err)
{
    PL_TRY(
        pl_buf_adds(out,
                    "# Environment\n\n"
                    "Made by `paceline help environment` from the one table of settings; a test keeps it equal.\n\n"
                    "A flag wins over the variable, the variable over the default. A malformed value stops the start "
                    "and names the\nsetting, its text and the accepted forms. A `PACELINE_` variable that is not "
                    "listed here is reported and has no effect.\n\n"
                    "| variable | flag | accepted | default | commands | meaning |\n|---|---|---|---|---|---|\n",
                    err));
    for (int i = 0; i < PL_SET_COUNT; i++)
        if (pl_setting_table[i].env)
            PL_TRY(doc_row(&pl_setting_table[i], out, err));
    return PL_OK;
}

pl_status pl_settings_report(const pl_settings *settings, pl_buf *out, pl_error *err)
{
    static const char *const from[] = {"default", "environment", "flag"};
    for (int i = 0; i < PL_SET_COUNT; i++) {
        const pl_setting *s = &pl_setting_table[i];
        const pl_setting_value *v = &settings->value[i];
        if (!(s->commands & settings->command->bit) || (!v->text && !s->env))
            continue;
        PL_TRY(pl_buf_addf(out, err, "  %-14s %-20s %s\n", s->name, v->text ? v->text : "-", from[v->source]));
    }
    return PL_OK;
}
