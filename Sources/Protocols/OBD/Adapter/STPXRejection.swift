// Stores which adapter identifies as an STN chip but does not support STPX, so that the command is not tried again after a restart.

struct STPXRejection: Sendable {
  private static let key = "no-stpx"
  private var adapter: String?

  mutating func restore(_ stored: [String: [UInt8]]) { adapter = stored[Self.key].map { String(decoding: $0, as: UTF8.self) } }

  /// Whether the adapter with these traits has rejected STPX.
  func applies(to traits: AdapterTraits) -> Bool { adapter == traits.name }

  mutating func note(_ traits: AdapterTraits, _ effects: inout Effects) {
    adapter = traits.name
    effects.append(.store(key: Self.key, Array((traits.name ?? "").utf8)))
  }
}
