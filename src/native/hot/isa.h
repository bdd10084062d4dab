// The instruction set that a translation unit is compiled for; README.md in this folder explains the consequences.
#pragma once

#ifndef CARANSAC_ISA
#define CARANSAC_ISA baseline
#endif
