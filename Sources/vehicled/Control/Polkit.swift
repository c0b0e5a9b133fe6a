// Asks polkit whether a client may do something; polkit may ask the person at the machine for a password, a fingerprint or
// a face first. Facts: polkit's D-Bus reference (org.freedesktop.PolicyKit1.Authority, CheckAuthorization, 0.105 and later).

import Bus
import Protocols

@Loop final class Polkit {
  private let bus: SystemBus

  /// A person needs time to find a finger.
  private static let timeout = 60_000
  private static let name = "org.freedesktop.PolicyKit1"

  /// Asks over this bus, which is opened with the first question.
  init(_ bus: SystemBus) { self.bus = bus }

  /// The action that stands for the right in the shipped policy.
  static func action(_ right: Right) -> String { "io.vehicled.\(right)" }

  /// Asks; `answer` is told why not, or nil where the right is granted.
  func ask(_ right: Right, of peer: Peer, answer: @escaping @Loop @Sendable (String?) -> Void) {
    bus.open()
    let subject = BusValue.structure([
      .string("unix-process"),
      .properties([
        "pid": .uint32(UInt32(bitPattern: peer.pid)), "start-time": .uint64(peer.startTime), "uid": .int32(Int32(bitPattern: peer.user)),
      ]),
    ])
    let interaction: UInt32 = 1
    var question = BusMessage.call(
      Self.name, "/org/freedesktop/PolicyKit1/Authority", "\(Self.name).Authority", "CheckAuthorization",
      [subject, .string(Self.action(right)), .array(of: "{ss}", []), .uint32(interaction), .string("")])
    question.startsService = true
    bus.call(question, milliseconds: Self.timeout) { answer(Self.refusal($0, right)) }
  }

  private static func refusal(_ result: Result<BusMessage, BusError>, _ right: Right) -> String? {
    let action = action(right)
    switch result {
    case .success(let message):
      guard case .structure(let members)? = message.body.first, members.count == 3, let isAuthorized = members[0].bool,
        let isChallenge = members[1].bool
      else { return "polkit answers what it should not" }
      if isAuthorized { return nil }
      return isChallenge
        ? "polkit wants \(action) to be authenticated, and there is nobody to ask; run it in a session with an agent (pkttyagent)"
        : "polkit refuses \(action); see its rules (/etc/polkit-1/rules.d) or who was asked"
    case .failure(.refused(let name, _)) where name == "org.freedesktop.DBus.Error.ServiceUnknown":
      return "polkit is not installed: apt install polkitd, or authorization = \"lists\""
    case .failure(.timeout): return "polkit has not answered within a minute"
    case .failure(let error): return "polkit cannot be asked: \(error.words)"
    }
  }
}

extension Peer {
  /// When the process began, in clock ticks since the boot; 0 leaves it to polkit to find out.
  fileprivate var startTime: UInt64 {
    guard let stat = try? Files.contents(of: "/proc/\(pid)/stat", limit: 4096) else { return 0 }
    // The name stands in parentheses and may hold anything; the start is the 20th field behind it.
    let fields = stat.suffix(from: stat.lastIndex(of: UInt8(ascii: ")")).map { $0 + 1 } ?? stat.endIndex).split(
      separator: UInt8(ascii: " "))
    return fields.count > 19 ? UInt64(String(decoding: fields[19], as: UTF8.self)) ?? 0 : 0
  }
}
