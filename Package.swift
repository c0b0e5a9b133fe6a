// swift-tools-version: 6.2
// Targets: Protocols (no I/O), Varlink (the socket's messages), SignalImport, Trips, SampleBlocks, SQLite and HistoryStore (recorded
// values), Peers (simulated devices, no I/O), Cryptography (OpenSSL), ServiceRuntime (the event loop and the sockets of programs beside the
// daemon), Observations (the daemon's values as such a program receives them), ConfigurationFiles (TOML), OpenMetrics, and the programs
// vehicled, vehicled-history, vehicled-mqtt, vehicled-web, vehiclectl and vehiclesim. See ARCHITECTURE.md. The plugin VehicleTables makes
// tables of the data files of Protocols. With VEHICLED_PROTOCOLS_ONLY set, the package is only the targets that need no packages, and
// their tests: the quick loop of `make protocols`. With VEHICLED_DEMO set, it is only the programs of `make demo` and what they
// need; with the value web, also the web server.
import PackageDescription

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

let package = Package(
  name: "vehicled",
  products: [
    .executable(name: "vehicled", targets: ["vehicled"]),
    .executable(name: "vehiclectl", targets: ["vehiclectl"]),
    .executable(name: "vehiclesim", targets: ["vehiclesim"]),
    .executable(name: "vehicled-history", targets: ["vehicled-history"]),
    .executable(name: "vehicled-mqtt", targets: ["vehicled-mqtt"]),
    .executable(name: "vehicled-web", targets: ["vehicled-web"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
  ],
  targets: [
    .target(
      name: "Protocols", dependencies: ["Cryptography"],
      exclude: ["OBD/Vehicles", "CANBus/Vehicles"], swiftSettings: strict,
      linkerSettings: [.linkedLibrary("m")], plugins: ["VehicleTables"]),
    .plugin(name: "VehicleTables", capability: .buildTool(), path: "Sources/VehicleTables", exclude: ["generate.py"]),
    .target(
      name: "Varlink", dependencies: ["Protocols"],
      resources: [.embedInCode("io.vehicled.varlink"), .embedInCode("io.vehicled.history.varlink")], swiftSettings: strict),
    .target(name: "SignalImport", dependencies: ["Protocols"], swiftSettings: strict),
    .target(name: "Trips", dependencies: ["Protocols"], swiftSettings: strict),
    .target(name: "SampleBlocks", dependencies: ["Protocols", "CDeflate"], swiftSettings: strict),
    .target(name: "SQLite", dependencies: ["CSQLite"], swiftSettings: strict),
    .target(name: "HistoryStore", dependencies: ["SampleBlocks", "Protocols", "SQLite"], swiftSettings: strict),
    .target(name: "Peers", dependencies: ["Protocols", "Cryptography"], swiftSettings: strict),
    .target(name: "Cryptography", dependencies: ["CCrypto"], swiftSettings: strict),
    .target(name: "CCrypto"),
    .target(name: "CLinux"),
    .target(name: "CCurl"),
    .target(name: "CSQLiteDynamic"),
    .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
    .systemLibrary(name: "CDBus", pkgConfig: "dbus-1", providers: [.apt(["libdbus-1-dev"])]),
    .systemLibrary(name: "CEvdev", pkgConfig: "libevdev", providers: [.apt(["libevdev-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CDeflate", pkgConfig: "libdeflate", providers: [.apt(["libdeflate-dev"])]),
    .systemLibrary(name: "CMosquitto", pkgConfig: "libmosquitto", providers: [.apt(["libmosquitto-dev"])]),
    .target(name: "CToml"),
    .target(
      name: "ServiceRuntime",
      dependencies: ["Protocols", "Varlink", "CLinux", "CSystemd", .product(name: "Logging", package: "swift-log")],
      swiftSettings: strict),
    .target(name: "ConfigurationFiles", dependencies: ["Protocols", "ServiceRuntime", "CToml"], swiftSettings: strict),
    .target(name: "Observations", dependencies: ["Protocols", "Varlink", "ServiceRuntime", "CLinux"], swiftSettings: strict),
    .target(name: "OpenMetrics", dependencies: ["Protocols", "Varlink"], swiftSettings: strict),
    .target(name: "DBus", dependencies: ["CDBus", "CLinux"], swiftSettings: strict),
    .executableTarget(
      name: "vehicled",
      dependencies: [
        "Protocols", "Varlink", "ServiceRuntime", "ConfigurationFiles", "DBus", "CCurl", "CLinux", "CSystemd", "CSQLiteDynamic",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "vehiclectl",
      dependencies: [
        "Protocols", "Varlink", "SignalImport", "SampleBlocks", "VSS", "OpenMetrics", "DBus", "CEvdev", "CLinux",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "vehiclesim",
      dependencies: [
        "Protocols", "Peers", "Cryptography", "Varlink", "SampleBlocks", "ServiceRuntime", "DBus", "CLinux", "CSQLite",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "vehicled-history",
      dependencies: [
        "Protocols", "Varlink", "ServiceRuntime", "ConfigurationFiles", "Observations", "SampleBlocks", "SQLite", "HistoryStore", "Trips",
        "CLinux",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .target(name: "VSS", dependencies: ["Protocols"], swiftSettings: strict),
    .testTarget(name: "VSSTests", dependencies: ["VSS", "Protocols"], swiftSettings: strict),
    .executableTarget(
      name: "vehicled-mqtt",
      dependencies: [
        "Protocols", "Varlink", "ServiceRuntime", "ConfigurationFiles", "Observations", "SampleBlocks", "SQLite", "VSS", "CMosquitto",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "vehicled-mqttTests",
      dependencies: [
        "vehicled-mqtt", "Protocols", "Varlink", "ServiceRuntime", "ConfigurationFiles", "Observations", "SampleBlocks", "SQLite", "Peers",
        "ConfigurationTesting",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "vehicled-web",
      dependencies: [
        "Protocols", "Cryptography", "Varlink", "ServiceRuntime", "ConfigurationFiles", "OpenMetrics", "CDeflate",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      exclude: ["Page", "Cockpit"], swiftSettings: strict),
    .testTarget(
      name: "vehicled-webTests",
      dependencies: [
        "vehicled-web", "Protocols", "Varlink", "ConfigurationFiles", "ConfigurationTesting", "CDeflate",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .testTarget(name: "OpenMetricsTests", dependencies: ["OpenMetrics", "Protocols", "Varlink"], swiftSettings: strict),
    .testTarget(name: "DBusTests", dependencies: ["DBus", "CLinux"], swiftSettings: strict),
    .testTarget(
      name: "ServiceRuntimeTests", dependencies: ["ServiceRuntime", "Protocols", "Varlink", "CLinux"], swiftSettings: strict),
    .target(
      name: "ConfigurationTesting", dependencies: ["ConfigurationFiles", "Protocols"], path: "Tests/ConfigurationTesting",
      swiftSettings: strict),
    .target(name: "MachineTesting", dependencies: ["Protocols"], path: "Tests/MachineTesting", swiftSettings: strict),
    .testTarget(name: "VarlinkTests", dependencies: ["Varlink", "Protocols"], swiftSettings: strict),
    .testTarget(name: "SignalImportTests", dependencies: ["SignalImport", "Protocols", "Peers"], swiftSettings: strict),
    .testTarget(name: "TripsTests", dependencies: ["Trips", "Protocols"], swiftSettings: strict),
    .testTarget(name: "SampleBlocksTests", dependencies: ["SampleBlocks", "Protocols"], swiftSettings: strict),
    .testTarget(
      name: "HistoryStoreTests", dependencies: ["HistoryStore", "SQLite", "SampleBlocks", "Protocols", "CSQLite"], swiftSettings: strict),
    .testTarget(name: "ProtocolsTests", dependencies: ["Protocols", "Cryptography", "Peers", "MachineTesting"], swiftSettings: strict),
    .testTarget(
      name: "vehicledTests",
      dependencies: [
        "vehicled", "Protocols", "Varlink", "ServiceRuntime", "ConfigurationFiles", "SignalImport", "Peers", "CCurl", "CLinux", "CSQLite",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "vehicled-historyTests",
      dependencies: [
        "vehicled-history", "Protocols", "Varlink", "ServiceRuntime", "ConfigurationFiles", "Observations", "SampleBlocks",
        "SQLite", "HistoryStore", "Trips", "Peers", "ConfigurationTesting",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "vehiclectlTests", dependencies: ["vehiclectl", "Protocols", "Varlink", "SampleBlocks", "DBus", "CLinux"], swiftSettings: strict
    ),
    .testTarget(name: "SystemTests", dependencies: ["Protocols", "Varlink", "ServiceRuntime", "DBus", "CLinux"], swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6],
  cxxLanguageStandard: .cxx17
)

if Context.environment["VEHICLED_PROTOCOLS_ONLY"] != nil {
  let needed: Set = [
    "Protocols", "Cryptography", "CCrypto", "VehicleTables", "Varlink", "SignalImport", "Peers", "MachineTesting", "ProtocolsTests",
    "VarlinkTests",
    "SignalImportTests", "Trips", "TripsTests", "CDeflate", "SampleBlocks", "SampleBlocksTests", "CLinux", "CSQLite",
    "SQLite", "HistoryStore", "HistoryStoreTests",
  ]
  package.products = []
  package.dependencies = []
  package.targets.removeAll { !needed.contains($0.name) }
}

if let demo = Context.environment["VEHICLED_DEMO"] {
  let web = demo == "web" ? [] : ["vehicled-web"]
  let others = web + ["vehicled-history", "vehicled-mqtt", "Observations", "HistoryStore", "SQLite", "Trips"]
  package.products.removeAll { others.contains($0.name) }
  package.targets.removeAll { others.contains($0.name) || $0.type == .test || $0.path?.hasPrefix("Tests") ?? false }
}
