// swift-tools-version: 6.2
// The house plan in targets: Protocols is pure, Peers mirrors it, vehicled and vehiclectl are the two programs,
// vehiclesim plays the other end. See ARCHITECTURE.md.
import PackageDescription

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

let package = Package(
  name: "vehicled",
  targets: [
    .target(
      name: "Protocols", resources: [.embedInCode("Varlink/io.vehicled.varlink")], swiftSettings: strict,
      linkerSettings: [.linkedLibrary("m")]),
    .target(name: "Peers", dependencies: ["Protocols"], swiftSettings: strict),
    .testTarget(name: "ProtocolsTests", dependencies: ["Protocols", "Peers"], swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6],
  cxxLanguageStandard: .cxx17
)
