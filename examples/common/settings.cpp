// The command line, read by CLI11.
#include "common/settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

// How many letters one has and the other has not, in any order: slips swap, leave out and double letters.
std::size_t letters_apart(std::string a, std::string b) {
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    std::string apart;
    std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(apart));
    return apart.size();
}

// The option that was meant by one that there is not; empty where none is like it.
std::string option_like(const CLI::App& app, std::string unknown) {
    unknown = unknown.substr(0, unknown.find('='));
    std::pair<std::size_t, std::string> nearest(std::max<std::size_t>(unknown.size() / 3, 2) + 1, "");
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames())
            nearest = std::min(nearest, std::pair(letters_apart(unknown, "--" + name), "--" + name));
    return nearest.second;
}

// As BITALE_FLAGS=memory_limit= counts them.
std::map<std::string, std::uint64_t> byte_units() {
    std::map<std::string, std::uint64_t> units{{"b", 1}};
    std::uint64_t binary = 1, decimal = 1;
    for (const std::string prefix : {"k", "m", "g", "t"}) {
        units[prefix] = units[prefix + "ib"] = binary *= 1024;
        units[prefix + "b"] = decimal *= 1000;
    }
    return units;
}

}  // namespace

std::string Settings::mnist_folder() {
    const char* folder = std::getenv("BITALE_DATA");
    return folder ? folder : MNIST_DIRECTORY;
}

const std::string& Settings::chosen(const std::string& name) const {
    for (const Choice& choice : choices)
        if (choice.name == name) return choice.value;
    throw std::logic_error(example + " has no option --" + name);
}

Settings parse_settings(int argc, char** argv, Settings settings) {
    CLI::App app(settings.description, settings.example);
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    for (Choice& choice : settings.choices) {
        choice.value = choice.values.front();
        const std::string name = "--" + choice.name;
        (choice.is_switch
             ? app.add_flag(name + "{" + choice.values.at(1) + "}", choice.value, choice.description)
             : app.add_option(name, choice.value, choice.description))
            ->check(CLI::IsMember(choice.values));
    }
    app.add_option("--device", settings.device,
                   "cpu, cuda, cuda:1, emulator or reference; default: Bitale's own choice");
    app.add_option("--storage", settings.storage,
                   "How the images are kept on the device; those of fewer than 8 bits have fewer levels")
        ->check(CLI::IsMember({"uint8", "int8", "float32", "uint4", "uint2", "uint1"}));
    app.add_option("--epochs", settings.epochs, "Passes over the training images")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--batch", settings.batch, "Images of a training step")->check(CLI::PositiveNumber);
    app.add_option("--limit", settings.limit, "Use the first N images of each set; 0: all")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--seed", settings.seed, "Seed of weights, order and dropout");
    app.add_option("--data", settings.data, settings.data_help);
    app.add_option("--save", settings.save, "Write the parameters to this .npz or .safetensors file");
    app.add_option("--load", settings.load, "Start from the parameters in this file");
    app.add_option("--checkpoint", settings.checkpoint,
                   "Go on from this .npz or .safetensors file, and write it after each epoch");
    app.add_option("--json", settings.json, "Write the results to this file");
    app.add_option("--dump", settings.dump, "Write generated sources and reports into this folder");
    if (settings.takes_memory_limit)
        app.add_option(
               "--memory-limit", settings.memory_limit.bytes,
               "Bytes that the evaluation may take, as 64MiB (1024 x 1024) or 64MB (1000 x 1000); 0: any")
            ->transform(CLI::AsNumberWithUnit(byte_units()));
    app.add_flag("--profile", settings.profile, "Measure each kernel, and print the report at the end");
    app.add_flag("--quiet", settings.quiet, "Print nothing but errors");
    app.footer(
        "BITALE_FLAGS=name=value,... in the environment sets options of the library, as threads=2 or\n"
        "cache=off; docs/options.md and bitale-info list them.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ExtrasError& error) {
        const int status = app.exit(error);
        for (const std::string& unknown : app.remaining())
            if (const std::string meant = option_like(app, unknown); !meant.empty() && unknown[0] == '-')
                std::cerr << "Did you mean " << meant << " instead of " << unknown << "?\n";
        std::exit(status);
    } catch (const CLI::ParseError& error) {
        std::exit(app.exit(error));
    }
    // Bitale reads its environment at the first use, which is yet to come.
    if (!settings.dump.empty()) setenv("BITALE_DUMP", settings.dump.c_str(), 1);
    return settings;
}
