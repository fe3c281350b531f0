// gpu_probe and gpu_steps, the programs of scripts/gpu_check, on the emulator: what they find out, and that
// they see what is wrong. Times mean nothing here.
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "runtime/cpu/gemm.h"
#include "tests/examples/programs.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"

namespace bitale {
namespace {

using nlohmann::json;

struct Ran {
    int status = 0;
    std::string output;
    json results;
};

Ran run(const std::string& command) {
    const std::string path = temporary_file("gpu.json");
    std::filesystem::remove(path);
    const Finished finished = run_program("../benchmarks/" + command + " --json " + path);
    INFO(command << "\n" << finished.output);
    REQUIRE(std::filesystem::exists(path));
    CHECK_FALSE(std::filesystem::exists(path + ".new"));
    return {finished.status, finished.output, json::parse(std::ifstream(path))};
}

std::vector<std::string> names_of(const json& items) {
    std::vector<std::string> names;
    for (const auto& [name, item] : items.items()) names.push_back(name);
    return names;
}

}  // namespace

TEST_CASE("gpu_probe finds every part of the emulated GPU right") {
    if (test::emulator_left_out()) return;
    const Ran r = run("gpu_probe --device emulator --reduced");
    INFO(r.output);
    CHECK(r.status == 0);
    CHECK(r.results["program"] == "gpu_probe");
    CHECK(r.results["emulated"] == true);
    CHECK(r.results["finished"] == true);
    CHECK(r.results["running"].is_null());
    const json& items = r.results["items"];
    for (const char* name : {"information", "kernel", "graph", "while", "nan", "copy", "fma", "launch",
                             "graph_node", "while_turn", "cudnn"}) {
        INFO(name);
        CHECK(items[name]["state"] == "passed");
        CHECK(items[name]["seconds"].get<double>() >= 0);
    }
    CHECK(items["information"]["name"] == "emulated GPU");
    CHECK(items["information"]["capability"] == "9.0");
    CHECK(items["information"]["libraries"].contains("cuDNN"));
    CHECK(items["while"]["turns"] == 8);
    // A convolution and its gradients, in one group of channels and in two.
    REQUIRE(items["cudnn"]["calls"].size() == 6);
    for (const json& call : items["cudnn"]["calls"]) CHECK(call["error"].get<double>() < 1e-6);
    // Where there is no oneDNN, nothing stands for cuBLASLt.
    if (items["cublaslt"]["state"] == "passed") {
        REQUIRE(items["cublaslt"]["calls"].size() == 4);
        for (const json& call : items["cublaslt"]["calls"]) CHECK(call["error"].get<double>() < 1e-6);
        CHECK(items["nan"]["product_bias_relu"]["survives"] == true);
    } else {
        CHECK(items["cublaslt"]["state"] == "skipped");
    }
    for (const char* network : {"generated_network", "dense_network", "convolutional_network"})
        CHECK(items["nan"][network]["survives"] == true);
    CHECK(items["nan"]["convolutional_network"]["library_calls"].size() == 2);
    CHECK(items["copy"]["GB_s"].get<double>() > 0);
    CHECK(items["copy"]["sizes"].size() == 2);
    CHECK(items["fma"]["TFLOP_s"].get<double>() > 0);
    for (const char* name : {"launch", "graph_node", "while_turn"}) CHECK(items[name].contains("us"));
}

TEST_CASE("gpu_probe runs chosen items, and says why there is no GPU") {
    if (test::emulator_left_out()) return;
    const Ran some = run("gpu_probe --device emulator --reduced --only while --only kernel");
    CHECK(some.status == 0);
    CHECK(names_of(some.results["items"]) == std::vector<std::string>{"kernel", "while"});

    const Ran none = run("gpu_probe --device cuda:99");
    CHECK(none.status == 1);
    const json& items = none.results["items"];
    CHECK(items["information"]["state"] == "failed");
    CHECK(!items["information"]["error"].get<std::string>().empty());
    CHECK(items["information"]["libraries"].contains("NVRTC"));
    CHECK(items["fma"]["state"] == "skipped");
    CHECK(items["fma"]["why"] == items["information"]["error"]);
    CHECK(run("gpu_probe --device cpu")
              .results["items"]["information"]["error"]
              .get<std::string>()
              .find("cpu") != std::string::npos);
}

TEST_CASE("gpu_probe times every engine that the libraries propose") {
    if (test::emulator_left_out()) return;
    const char* const flags = std::getenv("BITALE_FLAGS");
    const std::string before = flags ? flags : "";
    setenv("BITALE_FLAGS", (before + ",cuda_home=" EXAMPLES "/../emulated_cuda/13.1").c_str(), 1);
    const Ran r = run("gpu_probe --engines --reduced --device cuda --only d --only 'd tf32'");
    setenv("BITALE_FLAGS", before.c_str(), 1);
    INFO(r.output << r.results.dump(1));
    CHECK(r.status == 0);
    CHECK(names_of(r.results["items"]) == std::vector<std::string>{"d", "d tf32"});
    for (const auto& [name, item] : r.results["items"].items()) {
        CHECK(item["state"] == "passed");
        CHECK(item["batch"] == 4);
        int convolutions = 0;
        for (const json& call : item["calls"]) {
            INFO(call.dump(1));
            const bool convolution = call["chosen"].get<std::string>().find("cuDNN") == 0;
            convolutions += convolution;
            // Of the emulated cuDNN's eleven one is not exact in float32 alone, and one wants 3 GB.
            const json& engines = call["engines"];
            CHECK(engines.size() == (convolution ? 11 : 2));
            int qualify = 0, chosen = 0;
            for (const json& e : engines) {
                if (e["qualifies"] == false) {
                    CHECK(!e["why"].get<std::string>().empty());
                    CHECK_FALSE(e.contains("us"));
                    continue;
                }
                ++qualify;
                chosen += e["chosen"].get<bool>();
                CHECK(e["state"] == "passed");
                CHECK(e["us"].get<double>() > 0);
                CHECK(e["workspace_bytes"].get<std::int64_t>() >= 0);
                CHECK(e["error"].get<double>() < item["bound"].get<double>());
            }
            CHECK(qualify == (!convolution ? 2 : name == "d" ? 3 : 6));
            CHECK(chosen == 1);
        }
        CHECK(convolutions == 3);
    }
}

TEST_CASE("gpu_steps holds training steps against the cpu") {
    if (test::emulator_left_out()) return;
    // The bits of the cpu device without a library, its numbers with one.
    for (const std::string workload : {"a", "b128", "e"}) {
        const Ran r =
            run("gpu_steps --workload " + workload + " --device emulator --check cpu --profile --reduced");
        INFO(r.output);
        CHECK(r.status == 0);
        CHECK(r.results["workload"] == workload);
        CHECK(r.results["reduced"]["images"] == 64);
        CHECK(r.results["batch"] == r.results["reduced"]["batch"]);
        const json& items = r.results["items"];
        CHECK(items.size() == 6);
        for (const auto& [name, item] : items.items()) CHECK(item["state"] == "passed");
        const json& check = items["check"];
        CHECK(check["library"] == (workload != "a" && gemm_library().present));
        CHECK(check["losses"]["got"].size() == 2);
        REQUIRE(check["parameters"].size() == (workload == "a" ? 2 : workload == "e" ? 6 : 4));
        for (const json& p : check["parameters"])
            for (const char* when : {"after_first", "after_second"}) {
                CHECK(p[when]["difference"].get<double>() < 1e-5);
                if (workload == "a") CHECK(p[when]["same_bits"] == true);
            }
        const std::size_t kernels = items["build"]["kernels"].size();
        REQUIRE(kernels > 2);
        for (const json& k : items["build"]["kernels"]) {
            CHECK(!k["where"].empty());
            CHECK(k["bytes"].get<std::int64_t>() > 0);
            if (k["by_library"] == true) {
                CHECK(k.contains("call"));
            } else {
                CHECK(k["phases"][0]["blocks"].get<std::int64_t>() > 0);
                CHECK(k["phases"][0]["threads"].get<int>() > 0);
            }
        }
        REQUIRE(items["profile"]["rows"].size() == kernels);
        for (const json& row : items["profile"]["rows"]) CHECK(row["calls"].get<int>() > 0);
        for (const char* name : {"loop", "calls"}) CHECK(items[name]["rounds_us"].size() == 2);
        CHECK(items["report"]["nodes"].get<int>() >= static_cast<int>(kernels));
        CHECK(items["report"]["arena_bytes"].get<std::int64_t>() > 0);
        CHECK_THAT(items["report"]["launches"].get<std::string>(), ContainsSubstring("WHILE node"));
    }
}

TEST_CASE("gpu_steps sees other parameters, and takes its options") {
    if (test::emulator_left_out()) return;
    const Ran other =
        run("gpu_steps --workload a --batch 16 --device emulator --check cpu --check-seed 1 --reduced --only "
            "check");
    CHECK(other.status == 1);
    const json& check = other.results["items"]["check"];
    CHECK(check["state"] == "failed");
    CHECK_THAT(check["error"].get<std::string>(),
               ContainsSubstring("emulator and cpu disagree: w0 differs by"));
    CHECK(check["parameters"][0]["name"] == "w0");
    CHECK(check["parameters"][0]["after_first"]["same_bits"] == false);
    CHECK(check["loss_difference"].get<double>() > 1e-3);

    const Ran off = run("gpu_steps --workload a --device emulator --reduced --graphs off --storage float32");
    CHECK(off.status == 0);
    CHECK_THAT(off.results["items"]["report"]["launches"].get<std::string>(),
               ContainsSubstring("graphs=off"));
    CHECK_FALSE(off.results["items"]["report"].contains("nodes"));

    const Ran cpu = run("gpu_steps --workload a --device cpu --threads 1 --reduced --only loop");
    CHECK(cpu.status == 0);
    CHECK_THAT(cpu.results["flags"].get<std::string>(), ContainsSubstring("threads=1"));
    CHECK(names_of(cpu.results["items"]) == std::vector<std::string>{"loop"});

    const Finished unknown = run_program("../benchmarks/gpu_steps --workload z");
    CHECK(unknown.status == 1);
    CHECK_THAT(unknown.output, ContainsSubstring("unknown workload z"));
}

TEST_CASE("gpu_steps: the other workloads", "[slow]") {
    if (test::emulator_left_out()) return;
    for (const std::string workload : {"b20", "c8", "c128", "d", "e64"}) {
        const Ran r = run("gpu_steps --workload " + workload +
                          " --device emulator --check cpu --reduced --only build "
                          "--only check --only report");
        INFO(r.output);
        CHECK(r.status == 0);
        CHECK(r.results["items"]["check"]["library"] == (workload == "d" || gemm_library().present));
    }
}

}  // namespace bitale
