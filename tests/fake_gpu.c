/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands before the library and calls the CPU a GPU: "cuda" is there, its memory is apart from the
 * host's, and its multiprocessors take two blocks of everything. The driver's own libraries, too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <tilegemm.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
static int is_fake;

tg_status tg_open(tg_context **ctx, const char *backend, int device)
{
    is_fake = backend && strcmp(backend, "cuda") == 0;
    return NEXT(tg_open)(ctx, is_fake ? "cpu" : backend, device);
}

tg_status tg_backend_reason(const char *backend, char *reason, size_t size)
{
    return strcmp(backend, "cuda") == 0 ? TG_OK : NEXT(tg_backend_reason)(backend, reason, size);
}

tg_limits tg_device_limits(const tg_context *ctx)
{
    tg_limits gpu = {{4, 8}, 1024, 16, 255, 4, 227 << 10, 0, 0, 1 << 20, 6, 16, 0};
    return is_fake ? gpu : NEXT(tg_device_limits)(ctx);
}

/* Memory is passed over to keep a GPU busy while calls are queued, and here there is no queue. */
tg_status tg_gemm(tg_context *ctx, const tg_problem *p)
{
    return is_fake && p->k == 0 && p->beta == -1 ? TG_OK : NEXT(tg_gemm)(ctx, p);
}

tg_status tg_tile_usage(tg_context *ctx, const tg_tile *tile, tg_type type, tg_usage *usage)
{
    tg_usage gpu = {256, 96, 0, 32 << 10, 2};
    *usage = gpu;
    return TG_OK;
}

/* ---------------------------------------------------------------------------------- the driver */

int cuInit(unsigned flags) { return 0; }
int cuDeviceGet(int *device, int ordinal)
{
    *device = 7;
    return 0;
}
int cuDeviceGetPCIBusId(char *text, int size, int device)
{
    *text = 'b';
    text[1] = 0;
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 39    ? 2048
             : attribute == 82  ? 65536
             : attribute == 106 ? 32
             : attribute == 81  ? 228 << 10
             : attribute == 111 ? 1024
                                : -1;
    return device != 7;
}
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    *device = device;
    return *bus != 'b';
}
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz)
{
    *mhz = which == 1 ? 1980 : 3201;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = 698500;
    return 0;
}
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *bits)
{
    *bits = 4 | 32;
    return 0;
}
