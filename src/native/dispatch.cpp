#include <cstdlib>
#include <cstring>

#include "kernels.h"

namespace caransac {

namespace baseline {
extern const Kernels table;
}
#ifdef CARANSAC_X86
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}
#endif

namespace {

const Kernels& choose() {
#ifdef CARANSAC_X86
    const char* wanted = std::getenv("CARANSAC_INSTRUCTION_SET");
    const bool at_most_avx2 = wanted != nullptr && std::strcmp(wanted, "avx2") == 0;
    const bool only_baseline = wanted != nullptr && std::strcmp(wanted, "baseline") == 0;
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    if (has_avx512 && !at_most_avx2 && !only_baseline) return avx512::table;
    if (has_avx2 && !only_baseline) return avx2::table;
#endif
    return baseline::table;
}

}  // namespace

const Kernels& kernels() {
    static const Kernels& chosen = choose();
    return chosen;
}

}  // namespace caransac
