/*
 * Shim between a process under test and its disk and clock, loaded by LD_PRELOAD. Apache-2.0, like the rest.
 *
 * The synced content of files below TORTURE_DATA is copied to TORTURE_SHADOW, separate from unsynced writes:
 * after a kill the harness changes the folder to its state after a power loss (power.rs).
 *
 *   names         files at the start: number, tab, path (written by the harness)
 *   files/NUMBER  the synced content
 *   journal       changes of names since then: create, rename, unlink, and sync of a folder
 *
 * TORTURE_CONTROL is shared with the harness (shim.rs): see struct control.
 *
 * The real calls are made with syscall(2), which needs neither the process's allocator nor dlsym, except for the clock, to
 * keep its fast path. Real syncs are not made: the shadow is the disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAX_FILES 8192
#define MAX_DESCRIPTORS 65536
#define MAX_RANGES 512
#define MAX_PATH 512
#define EXPORT __attribute__((visibility("default")))

struct control {
    int64_t clock_offset_ns;
    uint64_t sync_delay_us;
    uint64_t failing_syncs; /* counts down */
    int64_t growth_left;    /* bytes by which files may still grow */
    uint64_t growth_limited;
    uint64_t syncs, writes, failed_syncs, refused_writes, clock_calls;
    uint64_t lies; /* syncs succeed and do nothing */
    uint64_t steps; /* requested changes of files and names, and syncs */
    uint64_t cut_from, cut_to; /* steps that are skipped, counted from 1; none while the first is 0 */
    uint64_t cut_errno; /* error of skipped steps; 0: the process is killed instead */
};

struct range {
    off_t from, to;
};

/* A file that was opened for writing. */
struct file {
    long number;
    char path[MAX_PATH]; /* relative to the data folder; empty without a name */
    struct range dirty[MAX_RANGES];
    int ranges; /* beyond MAX_RANGES the whole file is dirty */
    off_t shortest; /* minimum size since the last sync; -1: not truncated */
};

static struct file files[MAX_FILES];
static int file_count;
static long next_number;
static int of_descriptor[MAX_DESCRIPTORS]; /* index into files, plus one */
static char data_folder[MAX_PATH], shadow_folder[MAX_PATH];
static size_t data_length;
static struct control idle, *control = &idle;
static int journal = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

/* Counts one step; true if it is refused. */
static int cut(void) {
    uint64_t step = __atomic_add_fetch(&control->steps, 1, __ATOMIC_RELAXED);
    uint64_t from = __atomic_load_n(&control->cut_from, __ATOMIC_RELAXED);
    if (!from || step < from || step > control->cut_to) return 0;
    if (!control->cut_errno) {
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
        for (;;) syscall(SYS_pause);
    }
    errno = (int)control->cut_errno;
    return 1;
}

static int open_raw(const char *path, int flags, mode_t mode) {
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Returns the path relative to the data folder; NULL for other files. */
static const char *below(const char *path) {
    if (!data_length || !path || strncmp(path, data_folder, data_length) || path[data_length] != '/') return NULL;
    const char *rest = path + data_length + 1;
    return strlen(rest) < MAX_PATH ? rest : NULL;
}

static void note(const char *verb, const char *first, const char *second) {
    char line[2 * MAX_PATH + 64];
    int length = snprintf(line, sizeof line, "%s\t%s\t%s\n", verb, first, second);
    if (journal >= 0 && syscall(SYS_write, journal, line, length) != length) _exit(97);
}

static struct file *named(const char *path) {
    for (int at = 0; at < file_count; at++)
        if (!strcmp(files[at].path, path)) return &files[at];
    return NULL;
}

static struct file *added(long number, const char *path) {
    struct file *file = NULL;
    for (int at = 0; !file && at < file_count; at++)
        if (files[at].number < 0) file = &files[at];
    if (!file) {
        if (file_count == MAX_FILES) _exit(98);
        file = &files[file_count++];
    }
    memset(file, 0, sizeof *file);
    file->number = number;
    file->shortest = -1;
    strcpy(file->path, path);
    return file;
}

__attribute__((constructor)) static void begin(void) {
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    const char *data = getenv("TORTURE_DATA"), *shadow = getenv("TORTURE_SHADOW"), *shared = getenv("TORTURE_CONTROL");
    if (!shared) return;
    int fd = open_raw(shared, O_RDWR | O_CLOEXEC, 0);
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) _exit(96);
    control = page;
    if (!data || !shadow || strlen(data) >= MAX_PATH || strlen(shadow) >= MAX_PATH - 64) return;
    strcpy(shadow_folder, shadow);
    char path[MAX_PATH + 64], line[MAX_PATH + 64];
    snprintf(path, sizeof path, "%s/journal", shadow);
    journal = open_raw(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    snprintf(path, sizeof path, "%s/names", shadow);
    FILE *names = fopen(path, "r");
    while (names && fgets(line, sizeof line, names)) {
        char *tab = strchr(line, '\t');
        if (!tab) continue;
        tab[strcspn(tab, "\n")] = 0;
        struct file *file = added(atol(line), tab + 1);
        if (file->number >= next_number) next_number = file->number + 1;
    }
    if (names) fclose(names);
    strcpy(data_folder, data);
    data_length = strlen(data_folder);
}

static int opened(int fd, const char *path, int flags, int was_there) {
    const char *relative = below(path);
    if (fd < 0 || fd >= MAX_DESCRIPTORS) return fd;
    pthread_mutex_lock(&lock);
    of_descriptor[fd] = 0;
    if (relative && !(flags & O_DIRECTORY) && (flags & (O_ACCMODE | O_CREAT))) {
        struct file *file = named(relative);
        if (!file || !was_there) {
            char number[32];
            snprintf(number, sizeof number, "%ld", next_number);
            if (file) file->path[0] = 0;
            file = added(next_number++, relative);
            note("create", number, relative);
        }
        if (flags & O_TRUNC) file->shortest = 0;
        of_descriptor[fd] = file - files + 1;
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

static int open_any(const char *path, int flags, mode_t mode) {
    int saved = errno, was_there = !(flags & O_CREAT) || !syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
    errno = saved;
    if (!was_there && below(path) && cut()) return -1;
    return opened(open_raw(path, flags, mode), path, flags, was_there);
}

#define OPEN(name)                                             \
    EXPORT int name(const char *path, int flags, ...) {        \
        mode_t mode = 0;                                       \
        if (flags & (O_CREAT | __O_TMPFILE)) {                 \
            va_list rest;                                      \
            va_start(rest, flags);                             \
            mode = va_arg(rest, mode_t);                       \
            va_end(rest);                                      \
        }                                                      \
        return open_any(path, flags, mode);                    \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                  \
    EXPORT int name(int folder, const char *path, int flags, ...) {   \
        mode_t mode = 0;                                              \
        if (flags & (O_CREAT | __O_TMPFILE)) {                        \
            va_list rest;                                             \
            va_start(rest, flags);                                    \
            mode = va_arg(rest, mode_t);                              \
            va_end(rest);                                             \
        }                                                             \
        if (path[0] == '/' || folder == AT_FDCWD) return open_any(path, flags, mode); \
        return syscall(SYS_openat, folder, path, flags, mode);        \
    }
OPENAT(openat)
OPENAT(openat64)

EXPORT int close(int fd) {
    if (fd >= 0 && fd < MAX_DESCRIPTORS && of_descriptor[fd]) {
        pthread_mutex_lock(&lock);
        of_descriptor[fd] = 0;
        pthread_mutex_unlock(&lock);
    }
    return syscall(SYS_close, fd);
}

static struct file *written(int fd) {
    return fd >= 0 && fd < MAX_DESCRIPTORS && of_descriptor[fd] ? &files[of_descriptor[fd] - 1] : NULL;
}

static off_t size_of(int fd) {
    struct stat found;
    return fstat(fd, &found) ? 0 : found.st_size;
}

/* Takes space for a write; true if the disk has it. */
static int room(int fd, off_t end) {
    if (!__atomic_load_n(&control->growth_limited, __ATOMIC_RELAXED)) return 1;
    off_t growth = end - size_of(fd);
    if (growth <= 0) return 1;
    if (__atomic_sub_fetch(&control->growth_left, growth, __ATOMIC_RELAXED) >= 0) return 1;
    __atomic_add_fetch(&control->growth_left, growth, __ATOMIC_RELAXED);
    __atomic_add_fetch(&control->refused_writes, 1, __ATOMIC_RELAXED);
    errno = ENOSPC;
    return 0;
}

/* Called before the write, so that a concurrent sync copies at least the earlier content. */
static void dirty(struct file *file, off_t from, off_t to) {
    __atomic_add_fetch(&control->writes, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    struct range *last = file->ranges && file->ranges <= MAX_RANGES ? &file->dirty[file->ranges - 1] : NULL;
    if (last && from >= last->from && from <= last->to) {
        if (to > last->to) last->to = to;
    } else if (file->ranges <= MAX_RANGES) {
        if (file->ranges < MAX_RANGES) file->dirty[file->ranges] = (struct range){from, to};
        file->ranges++;
    }
    pthread_mutex_unlock(&lock);
}

static ssize_t write_at(int fd, const void *bytes, size_t count, off_t at) {
    struct file *file = written(fd);
    if (file) {
        if (cut() || !room(fd, at + (off_t)count)) return -1;
        dirty(file, at, at + count);
    }
    return syscall(SYS_pwrite64, fd, bytes, count, at);
}
EXPORT ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return write_at(fd, bytes, count, at); }
EXPORT ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) { return write_at(fd, bytes, count, at); }

static int plain(int fd, size_t count) {
    struct file *file = written(fd);
    if (!file) return 1;
    off_t at = fcntl(fd, F_GETFL) & O_APPEND ? size_of(fd) : lseek(fd, 0, SEEK_CUR);
    if (cut() || !room(fd, at + (off_t)count)) return 0;
    dirty(file, at, at + count);
    return 1;
}
EXPORT ssize_t write(int fd, const void *bytes, size_t count) {
    return plain(fd, count) ? syscall(SYS_write, fd, bytes, count) : -1;
}
EXPORT ssize_t writev(int fd, const struct iovec *parts, int count) {
    size_t all = 0;
    for (int at = 0; written(fd) && at < count; at++) all += parts[at].iov_len;
    return plain(fd, all) ? syscall(SYS_writev, fd, parts, count) : -1;
}

static int truncated(int fd, off_t size) {
    struct file *file = written(fd);
    if (file) {
        if (cut() || !room(fd, size)) return -1;
        pthread_mutex_lock(&lock);
        if (file->shortest < 0 || size < file->shortest) file->shortest = size;
        pthread_mutex_unlock(&lock);
    }
    return syscall(SYS_ftruncate, fd, size);
}
EXPORT int ftruncate(int fd, off_t size) { return truncated(fd, size); }
EXPORT int ftruncate64(int fd, off64_t size) { return truncated(fd, size); }

static int allocated(int fd, off_t at, off_t count) {
    if (written(fd) && cut()) return errno;
    if (written(fd) && !room(fd, at + count)) return ENOSPC;
    return syscall(SYS_fallocate, fd, 0, at, count) ? errno : 0;
}
EXPORT int posix_fallocate(int fd, off_t at, off_t count) { return allocated(fd, at, count); }
EXPORT int posix_fallocate64(int fd, off64_t at, off64_t count) { return allocated(fd, at, count); }

static void copy(int from, int to, off_t at, off_t end) {
    static char bytes[1 << 16]; /* under the lock */
    while (at < end) {
        size_t most = end - at < (off_t)sizeof bytes ? (size_t)(end - at) : sizeof bytes;
        ssize_t read = syscall(SYS_pread64, from, bytes, most, at);
        if (read <= 0) return;
        if (syscall(SYS_pwrite64, to, bytes, read, at) != read) _exit(95);
        at += read;
    }
}

/* Copies the file to the shadow. */
static void keep(int fd, struct file *file) {
    char path[2 * MAX_PATH];
    snprintf(path, sizeof path, "%s/files/%ld", shadow_folder, file->number);
    int shadow = open_raw(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    /* The descriptor may be write-only. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int from = open_raw(path, O_RDONLY | O_CLOEXEC, 0);
    if (shadow < 0 || from < 0) _exit(94);
    off_t size = size_of(fd);
    if (file->shortest >= 0 && file->shortest < size_of(shadow) && syscall(SYS_ftruncate, shadow, file->shortest)) _exit(93);
    if (file->ranges > MAX_RANGES) copy(from, shadow, 0, size);
    for (int at = 0; file->ranges <= MAX_RANGES && at < file->ranges; at++)
        copy(from, shadow, file->dirty[at].from, file->dirty[at].to < size ? file->dirty[at].to : size);
    if (syscall(SYS_ftruncate, shadow, size)) _exit(93);
    syscall(SYS_close, from);
    syscall(SYS_close, shadow);
    file->ranges = 0;
    file->shortest = -1;
}

static int fails(void) {
    uint64_t left = __atomic_load_n(&control->failing_syncs, __ATOMIC_RELAXED);
    while (left && !__atomic_compare_exchange_n(&control->failing_syncs, &left, left - 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return left != 0;
}

static int synced(int fd) {
    struct stat found;
    struct file *file = written(fd);
    if (!file) {
        char link[64], path[MAX_PATH + 1];
        if (!data_length || fstat(fd, &found) || !S_ISDIR(found.st_mode)) return syscall(SYS_fsync, fd);
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, MAX_PATH);
        path[length < 0 ? 0 : length] = 0;
        const char *folder = strcmp(path, data_folder) ? below(path) : "";
        if (folder && cut()) return -1;
        pthread_mutex_lock(&lock);
        if (folder) note("sync", folder, "");
        pthread_mutex_unlock(&lock);
        return folder ? 0 : syscall(SYS_fsync, fd);
    }
    uint64_t delay = __atomic_load_n(&control->sync_delay_us, __ATOMIC_RELAXED);
    if (delay) {
        struct timespec time = {delay / 1000000, delay % 1000000 * 1000};
        syscall(SYS_nanosleep, &time, NULL);
    }
    __atomic_add_fetch(&control->syncs, 1, __ATOMIC_RELAXED);
    int refused = cut(), why = refused ? errno : EIO;
    pthread_mutex_lock(&lock);
    int failing = fails() || refused;
    if (__atomic_load_n(&control->lies, __ATOMIC_RELAXED)) {
        failing = 0;
    } else if (failing) {
        /* As Linux does: data of a failed sync counts as clean afterwards, and is lost at a power loss. */
        file->ranges = 0;
        file->shortest = -1;
        __atomic_add_fetch(&control->failed_syncs, 1, __ATOMIC_RELAXED);
    } else {
        keep(fd, file);
    }
    pthread_mutex_unlock(&lock);
    if (failing) errno = why;
    return failing ? -1 : 0;
}
EXPORT int fsync(int fd) { return synced(fd); }
EXPORT int fdatasync(int fd) { return synced(fd); }

EXPORT int rename(const char *from, const char *to) {
    const char *old = below(from), *new = below(to);
    if ((old || new) && cut()) return -1;
    pthread_mutex_lock(&lock);
    int done = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (!done && old && new) {
        struct file *file = named(old), *replaced = named(new);
        if (replaced) replaced->path[0] = 0;
        if (file) strcpy(file->path, new);
        note("rename", old, new);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

static int unlinked(int folder, const char *path, int flags) {
    const char *old = below(path);
    if (old && cut()) return -1;
    pthread_mutex_lock(&lock);
    int done = syscall(SYS_unlinkat, folder, path, flags);
    if (!done && old) {
        struct file *file = named(old);
        if (file) file->path[0] = 0;
        note("unlink", old, "");
    }
    pthread_mutex_unlock(&lock);
    return done;
}
EXPORT int unlink(const char *path) { return unlinked(AT_FDCWD, path, 0); }
EXPORT int unlinkat(int folder, const char *path, int flags) { return unlinked(folder, path, flags); }

EXPORT int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = real_clock_gettime ? real_clock_gettime(clock, time) : (int)syscall(SYS_clock_gettime, clock, time);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    __atomic_add_fetch(&control->clock_calls, 1, __ATOMIC_RELAXED);
    int64_t offset = __atomic_load_n(&control->clock_offset_ns, __ATOMIC_RELAXED);
    int64_t nanos = time->tv_nsec + offset % 1000000000;
    time->tv_sec += offset / 1000000000 + (nanos >= 1000000000) - (nanos < 0);
    time->tv_nsec = (nanos + 1000000000) % 1000000000;
    return 0;
}
EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    *time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}
EXPORT time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into) *into = now.tv_sec;
    return now.tv_sec;
}
