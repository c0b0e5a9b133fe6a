// How the frames of the obd kind reach the bus, and which of them a socket receives.

/// How frames reach the bus.
enum FramesPort: Equatable, Sendable {
  /// Through an adapter. `bitRate` in bit/s; nil: the adapter keeps its own.
  case slcan(bitRate: Int?)
  /// Through a socket of the kernel. `bitRate` is the rate to which the administrator has set the interface, if known.
  case socket(bitRate: Int?)

  var bitRate: Int? {
    switch self {
    case .slcan(let bitRate), .socket(let bitRate): bitRate
    }
  }

  var isSocket: Bool { if case .socket = self { true } else { false } }

  /// Sends and removes the frames: to an adapter in one write, to a socket each in its own.
  func send(_ frames: inout [CANFrame], _ effects: inout Effects) {
    guard !frames.isEmpty else { return }
    defer { frames.removeAll(keepingCapacity: true) }
    if isSocket {
      for frame in frames { effects.send(.main, SocketCAN.bytes(of: frame)) }
      return
    }
    var text: [UInt8] = []
    text.reserveCapacity(frames.count * 27)
    for frame in frames { SLCAN.append(frame, to: &text) }
    effects.send(.main, text)
  }
}

/// The frames that a socket of the kernel receives: those with the response identifiers of ISO 15765-4 and of most manufacturers, and those
/// of further ECUs once a request is sent to them.
struct ResponseFilters: Sendable {
  private static let fixed = [
    CANFilter(CANIdentifier(0x600), mask: 0x600), CANFilter(CANIdentifier(0x18DA_F100), mask: 0x1FFF_FF00),
  ]
  private static let maxCount = 64

  private(set) var list = Self.fixed

  /// Adds the responses of this identifier. Returns false if they pass already.
  mutating func admit(_ reply: CANIdentifier) -> Bool {
    if list.contains(where: { $0.matches(reply) }) { return false }
    if list.count == Self.maxCount { list.remove(at: Self.fixed.count) }
    list.append(CANFilter(reply, mask: 0x1FFF_FFFF))
    return true
  }
}
