/* See machine.h. */
#include "bench/machine.h"

#include "bench/reply.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/times.h>
#include <unistd.h>

enum { SMALL_FILE = 8192, PATH_ROOM = 512, PROCESSORS_MAX = 4096, ZONES_MAX = 256 };

/* The beginning of a small file, as text; false when there is none. */
static bool read_small(const char *root, const char *name, char text[SMALL_FILE])
{
    char path[PATH_ROOM];
    int n = snprintf(path, sizeof path, "%s/%s", root, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, SMALL_FILE - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static bool read_number(const char *root, const char *name, double *out)
{
    char text[SMALL_FILE], *end;
    if (!read_small(root, name, text))
        return false;
    *out = strtod(text, &end);
    return end != text && isfinite(*out);
}

static void read_ticks(pl_bench_machine *m, const char *root)
{
    char text[SMALL_FILE];
    double t[8] = {0}; /* user nice system idle iowait irq softirq steal */
    if (!read_small(root, "proc/stat", text) || strncmp(text, "cpu ", 4) != 0)
        return;
    char *at = text + 4;
    for (int i = 0; i < 8; i++)
        t[i] = strtod(at, &at);
    for (int i = 0; i < 8; i++)
        m->total += t[i];
    m->steal = t[7];
    m->busy = m->total - t[3] - t[4] - t[7];
    m->has_ticks = m->total > 0;
}

static void read_clocks(pl_bench_machine *m, const char *root)
{
    double sum = 0, throttles = 0;
    int clocks = 0, counts = 0;
    for (int i = 0; i < PROCESSORS_MAX; i++) {
        char name[128];
        double value;
        (void)snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", i);
        if (read_number(root, name, &value))
            sum += value / 1000, clocks++;
        (void)snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", i);
        if (read_number(root, name, &value))
            throttles += value, counts++;
        if (!clocks && !counts && i >= 1)
            break; /* a machine that tells nothing of its first two tells nothing of the rest */
    }
    m->mhz = clocks ? sum / clocks : NAN;
    m->throttles = counts ? throttles : NAN;
}

static void read_heat(pl_bench_machine *m, const char *root)
{
    for (int i = 0; i < ZONES_MAX; i++) {
        char name[128];
        double value;
        (void)snprintf(name, sizeof name, "sys/class/thermal/thermal_zone%d/temp", i);
        if (!read_number(root, name, &value))
            break;
        value /= 1000;
        if (!(m->celsius >= value))
            m->celsius = value;
    }
}

void pl_bench_machine_read(pl_bench_machine *m, const char *root)
{
    char text[SMALL_FILE];
    *m = (pl_bench_machine){.load1 = NAN, .mhz = NAN, .celsius = NAN, .available_mib = NAN, .throttles = NAN};
    double load;
    if (read_number(root, "proc/loadavg", &load))
        m->load1 = load;
    if (read_small(root, "proc/meminfo", text)) {
        const char *line = strstr(text, "MemAvailable:");
        if (line)
            m->available_mib = strtod(line + 13, NULL) / 1024;
    }
    read_ticks(m, root);
    read_clocks(m, root);
    read_heat(m, root);
}

/* "pid (name) state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime cstime": the
 * name may hold anything, so the fields count from its last bracket. */
static double ticks_of(const char *stat, int64_t group)
{
    const char *at = strrchr(stat, ')');
    double ticks = 0;
    if (!at || strlen(at) < 4)
        return 0;
    at += 3; /* ") S" */
    for (int field = 4; field <= 17; field++) {
        char *end;
        double value = strtod(at, &end);
        if (end == at || (field == 5 && (int64_t)value != group))
            return 0;
        if (field >= 14)
            ticks += value;
        at = end;
    }
    return ticks;
}

double pl_bench_group_ticks(const char *root, int64_t group)
{
    char path[PATH_ROOM], text[SMALL_FILE];
    double ticks = 0;
    (void)snprintf(path, sizeof path, "%s/proc", root);
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || strlen(entry->d_name) > 20)
            continue;
        (void)snprintf(path, sizeof path, "proc/%.20s/stat", entry->d_name);
        if (read_small(root, path, text))
            ticks += ticks_of(text, group);
    }
    closedir(dir);
    return ticks;
}

double pl_bench_own_ticks(void)
{
    struct tms t;
    return times(&t) == (clock_t)-1 ? 0 : (double)t.tms_utime + (double)t.tms_stime;
}

double pl_bench_other_share(const pl_bench_machine *from, const pl_bench_machine *to, double known)
{
    double total = to->total - from->total, busy = to->busy - from->busy - known;
    if (!from->has_ticks || !to->has_ticks || total <= 0)
        return NAN;
    return busy > 0 ? busy / total : 0; /* ticks are rounded: known ones may be the more */
}

double pl_bench_steal_share(const pl_bench_machine *from, const pl_bench_machine *to)
{
    double total = to->total - from->total;
    return from->has_ticks && to->has_ticks && total > 0 ? (to->steal - from->steal) / total : NAN;
}

bool pl_bench_disturbed(const pl_bench_around *a, const pl_bench_limits *limits, char why[200])
{
    double before = pl_bench_other_share(&a->before[0], &a->before[1], 0);
    double after = pl_bench_other_share(&a->after[0], &a->after[1], 0);
    double during = pl_bench_other_share(&a->during[0], &a->during[1], a->known);
    double steal = pl_bench_steal_share(&a->during[0], &a->during[1]);
    double heat = fmax(a->before[1].celsius, a->after[0].celsius); /* fmax passes a NAN over */
    double slowed = a->during[1].throttles - a->during[0].throttles;
    why[0] = '\0';
    if (before > limits->busy)
        (void)snprintf(why, 200, "%.1f%% of the processors were busy before the server started", before * 100);
    else if (during > limits->busy)
        (void)snprintf(why, 200, "others had %.1f%% of the processors during the cell", during * 100);
    else if (steal > limits->busy)
        (void)snprintf(why, 200, "%.1f%% of the processors' time was stolen by the host", steal * 100);
    else if (after > limits->busy)
        (void)snprintf(why, 200, "%.1f%% of the processors were busy after the server ended", after * 100);
    else if (slowed > 0)
        (void)snprintf(why, 200, "processors were slowed for heat %.0f times", slowed);
    else if (heat > limits->celsius)
        (void)snprintf(why, 200, "a thermal zone was at %.1f degrees Celsius", heat);
    return why[0] != '\0';
}

static json_t *reading(const pl_bench_machine *m, double share)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "load1", pl_bench_real(m->load1), "busy_share",
                     pl_bench_real(share), "mhz", pl_bench_real(m->mhz), "celsius", pl_bench_real(m->celsius),
                     "throttles", pl_bench_real(m->throttles), "available_mib", pl_bench_real(m->available_mib));
}

json_t *pl_bench_around_json(const pl_bench_around *a)
{
    const pl_bench_machine *m = &a->before[1];
    json_t *unknown = json_array();
    const struct {
        const char *name;
        bool known;
    } what[] = {{"busy_share", m->has_ticks},
                {"load1", isfinite(m->load1)},
                {"mhz", isfinite(m->mhz)},
                {"celsius", isfinite(m->celsius)},
                {"throttles", isfinite(m->throttles)},
                {"available_mib", isfinite(m->available_mib)}};
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        if (!what[i].known)
            (void)json_array_append_new(unknown, json_string(what[i].name));
    return json_pack(
        "{s:o, s:o, s:{s:o, s:o}, s:o}", "start", reading(m, pl_bench_other_share(&a->before[0], &a->before[1], 0)),
        "end", reading(&a->after[0], pl_bench_other_share(&a->after[0], &a->after[1], 0)), "during", "other_share",
        pl_bench_real(pl_bench_other_share(&a->during[0], &a->during[1], a->known)), "steal_share",
        pl_bench_real(pl_bench_steal_share(&a->during[0], &a->during[1])), "unknown", unknown);
}
