// The instruction set a translation unit is compiled for; README.md in this folder says what follows from it.
#pragma once

#ifndef CARANSAC_ISA
#define CARANSAC_ISA baseline
#endif
