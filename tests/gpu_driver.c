/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver of a GPU as a program sees it that uses streams and graphs, without its headers: one
 * list of names for each backend. Handles are pointers in all of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "gpu.h"

gpu_driver gpu;

static void *library;

/* ----------------------------------------------------------------------------------------- CUDA */

static struct {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int index);
    int (*context_retain)(void **context, int device); /* the one that the runtime uses */
    int (*context_set)(void *context);
    int (*module_load)(void **module, const void *image);
    int (*module_function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  void *stream, void **arguments, void **extra);
} cuda;

static int cuda_use(int index)
{
    void *context;
    int device;
    return cuda.init(0) || cuda.device_get(&device, index) ||
           cuda.context_retain(&context, device) || cuda.context_set(context);
}

static void *cuda_kernel(const char *text)
{
    void *module, *function;
    return cuda.module_load(&module, text) || cuda.module_function(&function, module, "kernel")
               ? NULL
               : function;
}

#define PTX(parameters, body)                                                                 \
    ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry kernel(" parameters ")\n" \
    "{\n" body "    ret;\n}\n"

static int cuda_start_faulty_kernel(void)
{
    void *kernel =
        cuda_kernel(PTX("", ".reg .b64 %at; mov.u64 %at, 64; st.global.u32 [%at], 0;\n"));
    return !kernel || cuda.launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static int cuda_start_empty_kernel(void)
{
    static void *kernel;
    char argument[200] = {0};
    void *arguments[] = {argument};
    if (!kernel)
        kernel = cuda_kernel(PTX(".param .align 8 .b8 argument[200]", ""));
    return !kernel || cuda.launch(kernel, 132, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL);
}

/* ---------------------------------------------------------------------------------------- names */

typedef struct function {
    const char *name;
    void *slot; /* the pointer to be set */
} function;

static const function cuda_functions[] = {
    {"cuInit", &cuda.init},
    {"cuDeviceGet", &cuda.device_get},
    {"cuDevicePrimaryCtxRetain", &cuda.context_retain},
    {"cuCtxSetCurrent", &cuda.context_set},
    {"cuModuleLoadData", &cuda.module_load},
    {"cuModuleGetFunction", &cuda.module_function},
    {"cuLaunchKernel", &cuda.launch},
    {"cuStreamCreate", &gpu.stream_create},
    {"cuStreamSynchronize", &gpu.stream_wait},
    {"cuStreamQuery", &gpu.stream_ask},
    {"cuStreamDestroy_v2", &gpu.stream_destroy},
    {"cuStreamBeginCapture_v2", &gpu.capture_begin},
    {"cuStreamEndCapture", &gpu.capture_end},
    {"cuGraphInstantiateWithFlags", &gpu.graph_prepare},
    {"cuGraphLaunch", &gpu.graph_launch},
    {"cuGraphExecDestroy", &gpu.ready_destroy},
    {"cuGraphDestroy", &gpu.graph_destroy},
    {NULL, NULL},
};

static const function hip_functions[] = {
    {"hipSetDevice", &gpu.use},
    {"hipStreamCreateWithFlags", &gpu.stream_create},
    {"hipStreamSynchronize", &gpu.stream_wait},
    {"hipStreamQuery", &gpu.stream_ask},
    {"hipStreamDestroy", &gpu.stream_destroy},
    {"hipStreamBeginCapture", &gpu.capture_begin},
    {"hipStreamEndCapture", &gpu.capture_end},
    {"hipGraphInstantiateWithFlags", &gpu.graph_prepare},
    {"hipGraphLaunch", &gpu.graph_launch},
    {"hipGraphExecDestroy", &gpu.ready_destroy},
    {"hipGraphDestroy", &gpu.graph_destroy},
    {NULL, NULL},
};

static const struct {
    const char *backend, *library;
    const function *functions;
    gpu_driver own; /* what is no function of the library */
} drivers[] = {
    {"cuda",
     "libcuda.so.1",
     cuda_functions,
     {.use = cuda_use,
      .start_faulty_kernel = cuda_start_faulty_kernel,
      .start_empty_kernel = cuda_start_empty_kernel}},
    {"hip", "libamdhip64.so", hip_functions, {.use = NULL}},
};

int gpu_driver_find(const char *backend)
{
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        if (strcmp(backend, drivers[i].backend) != 0)
            continue;
        gpu = drivers[i].own;
        library = dlopen(drivers[i].library, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            return 0;
        for (const function *f = drivers[i].functions; f->name; f++) {
            void *address = dlsym(library, f->name);
            if (!address)
                return printf("%s has no %s\n", drivers[i].library, f->name), 0;
            memcpy(f->slot, &address, sizeof address);
        }
        return 1;
    }
    return 0;
}
