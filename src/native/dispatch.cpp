#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <stdexcept>

#include "hot/kernels.h"

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
    const char* wanted = std::getenv("CARANSAC_INSTRUCTION_SET");
    if (wanted == nullptr) wanted = "";
    bool known = false;
    for (const char* name : {"", "baseline", "avx2", "avx512"}) known = known || std::strcmp(wanted, name) == 0;
    if (!known) throw std::invalid_argument("CARANSAC_INSTRUCTION_SET must be baseline, avx2 or avx512");
#ifdef CARANSAC_X86
    const bool at_most_avx2 = std::strcmp(wanted, "avx2") == 0, only_baseline = std::strcmp(wanted, "baseline") == 0;
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
