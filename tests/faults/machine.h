// The emulator plays a machine: what it allocates for itself stands for what a GPU has, and never fails,
// unless a test wants it.
#pragma once

namespace bitale::test {

void emulator_never_fails();

// While it lives, what the emulator's functions allocate may fail too, but for what a GPU would do by itself.
class FailingEmulator {
  public:
    FailingEmulator();
    ~FailingEmulator();
    FailingEmulator(const FailingEmulator&) = delete;
    FailingEmulator& operator=(const FailingEmulator&) = delete;
};

}  // namespace bitale::test
