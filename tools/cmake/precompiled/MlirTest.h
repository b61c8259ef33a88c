// What unit tests of the compiler include most.
#include "Dialects.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
