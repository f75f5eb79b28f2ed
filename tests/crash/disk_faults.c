/* Loaded before the C library: the n-th wait for the disk from now on fails, and so do the next. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

static atomic_int left = 0, failures = 0;

void fail_after(int waits, int how_many) {
    atomic_store(&failures, how_many);
    atomic_store(&left, waits);
}

static int fails(void) {
    if (atomic_load(&left) > 0 && atomic_fetch_sub(&left, 1) > 1) return 0;
    return atomic_load(&failures) > 0 && atomic_fetch_sub(&failures, 1) > 0;
}

#define DISK_WAIT(name)                                                  \
    int name(int descriptor) {                                           \
        if (fails()) { errno = EIO; return -1; }                         \
        return ((int (*)(int))dlsym(RTLD_NEXT, #name))(descriptor);      \
    }

DISK_WAIT(fsync)
DISK_WAIT(fdatasync)
