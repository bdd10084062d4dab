// Compiled once per instruction set, like the kernels it lists.
#include "kernels.h"

#define CARANSAC_STRING_(x) #x
#define CARANSAC_STRING(x) CARANSAC_STRING_(x)
#define CARANSAC_ADDRESS(name) name,

namespace caransac::CARANSAC_ISA {

extern const Kernels table;
const Kernels table = {CARANSAC_STRING(CARANSAC_ISA), CARANSAC_KERNELS(CARANSAC_ADDRESS)};

}  // namespace caransac::CARANSAC_ISA
