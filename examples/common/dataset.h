// Labelled images, as they are kept on the device.
#pragma once

#include <bitale/bitale.h>

#include <cstdint>
#include <string>

#include "common/settings.h"

struct DataSet {
    bitale::Array images;                      // [n, channels, height, width]: pixel - Data::offset
    bitale::Array labels{bitale::uint8, {0}};  // [n]
    std::int64_t count() const { return labels.size(); }
};

struct Data {
    std::string source{};  // said to the user where the name of the program does not say it
    DataSet train{}, test{};
    DataSet valid{};  // may be empty: then each epoch is judged by the test images
    int offset = 0;   // 128 for int8, else 0
};

// How much is subtracted from a pixel before it is stored.
int offset_of(const Settings& settings);
// Bytes as the storage's dtype, less that offset; as they are where the storage has fewer bits.
bitale::Array stored(const bitale::Array& pixels, const Settings& settings);

// Images in a variable of the device.
struct StoredImages {
    bitale::Shared whole;      // or
    bitale::PackedShared few;  // bits; float32 in expressions
    std::int64_t bytes = 0;    // that the variable takes
    bitale::Expr operator[](const bitale::Index& at) const { return whole.state() ? whole[at] : few[at]; }
    bitale::Expr all() const { return whole.state() ? bitale::Expr(whole) : bitale::Expr(few); }
};
// Of what `stored` has made. Storages of fewer bits divide 0 to 255 into levels, and keep the nearest one.
StoredImages on_device(const bitale::Array& images, const std::string& name, const Settings& settings);
// The first rows only, if --limit says so.
bitale::Array limited(const bitale::Array& all, const Settings& settings);
