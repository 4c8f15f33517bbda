/* SPDX-License-Identifier: Apache-2.0
 *
 * What NVIDIA's driver tells of a device, beside what the library needs: the clocks that a race was
 * run at and what held them back (NVML), and what one multiprocessor has room for. Both libraries
 * come with the driver and are loaded while the program runs; without them nothing is known.
 */
#include "cli.h"

#include <dlfcn.h>
#include <string.h>

typedef int init_fn(unsigned flags);
typedef int device_fn(int *device, int ordinal);
typedef int attribute_fn(int *value, int attribute, int device);
typedef int bus_fn(char *text, int size, int device);
typedef int nvml_init_fn(void);
typedef int nvml_find_fn(const char *bus, void **device);
typedef int nvml_number_fn(void *device, unsigned *value);
typedef int nvml_choice_fn(void *device, int which, unsigned *value);
typedef int nvml_bits_fn(void *device, unsigned long long *bits);

/* The driver, started. Libraries stay loaded. */
static void *driver(const cli_machine *machine)
{
    if (strcmp(machine->backend, "cuda") != 0)
        return NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    init_fn *init = library ? (init_fn *)dlsym(library, "cuInit") : NULL;
    return init && init(0) == 0 ? library : NULL;
}

/* The context's device is always the first one. */
static int find_device(void *library, int *device)
{
    device_fn *get = (device_fn *)dlsym(library, "cuDeviceGet");
    return get && get(device, 0) == 0;
}

/* ------------------------------------------------------------------------------ a unit's room */
cli_unit cli_read_unit(const cli_machine *machine)
{
    enum { UNIT_THREADS = 39, UNIT_FAST = 81, UNIT_REGISTERS = 82, UNIT_BLOCKS = 106, TAKEN = 111 };
    static const int wanted[] = {UNIT_THREADS, UNIT_REGISTERS, UNIT_BLOCKS, UNIT_FAST, TAKEN};
    cli_unit unit = {0};
    int values[5] = {0}, device;
    void *library = driver(machine);
    attribute_fn *get = library ? (attribute_fn *)dlsym(library, "cuDeviceGetAttribute") : NULL;
    if (!get || !find_device(library, &device))
        return unit;
    for (int i = 0; i < 5; i++) {
        if (get(&values[i], wanted[i], device) != 0)
            return unit;
    }
    unit.threads = values[0], unit.registers = values[1], unit.blocks = values[2];
    unit.fast_bytes = values[3], unit.fast_taken = values[4];
    unit.is_known =
        unit.threads > 0 && unit.registers > 0 && unit.blocks > 0 && unit.fast_bytes > 0;
    return unit;
}

/* ------------------------------------------------------------------------------------- clocks */
/* NVML counts devices in an order of its own: the bus says which one it is. */
static void *find_in_nvml(void *nvml, const cli_machine *machine)
{
    char bus[CLI_NAME] = "";
    int device;
    void *found = NULL, *library = driver(machine);
    bus_fn *get_bus = library ? (bus_fn *)dlsym(library, "cuDeviceGetPCIBusId") : NULL;
    nvml_init_fn *init = (nvml_init_fn *)dlsym(nvml, "nvmlInit_v2");
    nvml_find_fn *find = (nvml_find_fn *)dlsym(nvml, "nvmlDeviceGetHandleByPciBusId_v2");
    if (!get_bus || !find_device(library, &device) || get_bus(bus, sizeof bus, device) != 0)
        return NULL;
    return init && find && init() == 0 && find(bus, &found) == 0 ? found : NULL;
}

static int choice(void *nvml, const char *name, void *device, int which)
{
    unsigned value = 0;
    nvml_choice_fn *get = (nvml_choice_fn *)dlsym(nvml, name);
    return get && get(device, which, &value) == 0 ? (int)value : 0;
}

static void name_reasons(unsigned long long bits, char *text, size_t size)
{
    static const char *const names[] = {"idle",        "clocks asked for", "power cap",
                                        "hardware",    "sync boost",       "heat",
                                        "memory heat", "power brake",      "display"};
    *text = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(text);
        if (bits >> i & 1)
            snprintf(text + length, size - length, "%s%s", length ? ", " : "", names[i]);
    }
    if (!*text)
        snprintf(text, size, "nothing");
}

cli_clocks cli_read_clocks(const cli_machine *machine)
{
    enum { SM = 1, MEMORY = 2 };
    cli_clocks clocks = {0};
    if (strcmp(machine->backend, "cuda") != 0)
        return clocks;
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    void *device = nvml ? find_in_nvml(nvml, machine) : NULL;
    if (!device)
        return clocks;
    unsigned milliwatts = 0;
    unsigned long long reasons = 0;
    nvml_number_fn *power = (nvml_number_fn *)dlsym(nvml, "nvmlDeviceGetPowerUsage");
    void *why = dlsym(nvml, "nvmlDeviceGetCurrentClocksEventReasons");
    if (!why)
        why = dlsym(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons");
    clocks.sm_mhz = choice(nvml, "nvmlDeviceGetClockInfo", device, SM);
    clocks.memory_mhz = choice(nvml, "nvmlDeviceGetClockInfo", device, MEMORY);
    clocks.celsius = choice(nvml, "nvmlDeviceGetTemperature", device, 0);
    if (power && power(device, &milliwatts) == 0)
        clocks.watts = milliwatts / 1e3;
    if (why && ((nvml_bits_fn *)why)(device, &reasons) == 0)
        name_reasons(reasons, clocks.limited_by, sizeof clocks.limited_by);
    clocks.is_known = clocks.sm_mhz > 0;
    return clocks;
}

void cli_print_clocks(const char *when, const cli_clocks *clocks)
{
    if (!clocks->is_known)
        return;
    printf("%s: %d MHz, memory %d MHz", when, clocks->sm_mhz, clocks->memory_mhz);
    if (clocks->watts > 0)
        printf(", %.0f W", clocks->watts);
    if (clocks->celsius > 0)
        printf(", %d C", clocks->celsius);
    if (*clocks->limited_by)
        printf(", held back by %s", clocks->limited_by);
    printf("\n");
}
