#pragma once

// What a test asks of fake_hip.cpp, which stands in for AMD's library.

extern "C" {

/// Calls of a function so far, by its name.
int fake_hip_calls(const char* name);

/// The version that it says it has, as HIP counts: 60300000 is 6.3.
void fake_hip_pretend(int version);

/// The error that the next launch gives.
void fake_hip_fail_launch(int code);

/// What waited on a stream for a value that was not there.
int fake_hip_blocked();
}
