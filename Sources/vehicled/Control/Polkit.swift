// Authorization queries to polkit, which may ask the user for a password or a fingerprint first. Source: polkit's D-Bus
// reference (org.freedesktop.PolicyKit1.Authority, CheckAuthorization and CancelCheckAuthorization, 0.105 and later).

import DBus
import Protocols
import ServiceRuntime

@Loop final class Polkit {
  private let bus: SystemBus

  /// The timeout in ms, which is long enough for the user to authenticate.
  private static let timeout = 60_000
  private static let name = "org.freedesktop.PolicyKit1"
  /// The maximum number of unanswered queries of one user.
  static let maxPerUser = 4
  /// The maximum number of unanswered queries of all users together.
  private static let maxPending = 64
  /// The user of each query without an answer, by the query's cancellation ID.
  private var pending: [Int: UInt32] = [:]
  private var lastNumber = 0

  /// Uses this bus connection, which opens with the first query.
  init(_ bus: SystemBus) { self.bus = bus }

  /// The polkit action of a right in the shipped policy.
  static func action(_ right: Right) -> String { "io.vehicled.\(right)" }

  /// Queries polkit. `answer` gets the reason for a refusal, or nil if the right is granted. Returns a function that cancels the query,
  /// because polkit may be showing a dialog. The function has no effect after the answer.
  func authorize(
    _ right: Right, for peer: Peer, answer: @escaping @Loop @Sendable (_ refusal: String?) -> Void
  ) -> @Loop () -> Void {
    guard pending.count < Self.maxPending, pending.values.count(where: { $0 == peer.user }) < Self.maxPerUser else {
      answer("too many requests for authorization are waiting; answer or cancel them, then try again")
      return {}
    }
    bus.open()
    lastNumber += 1
    let number = lastNumber
    pending[number] = peer.user
    let subject = DBusValue.structure([
      .string("unix-process"),
      .properties([
        "pid": .uint32(UInt32(bitPattern: peer.pid)), "start-time": .uint64(peer.startTime), "uid": .int32(Int32(bitPattern: peer.user)),
      ]),
    ])
    let allowUserInteraction: UInt32 = 1
    let arguments: [DBusValue] = [
      subject, .string(Self.action(right)), .array(of: "{ss}", []), .uint32(allowUserInteraction), .string("\(number)"),
    ]
    call("CheckAuthorization", arguments) { [weak self] result in
      self?.pending[number] = nil
      answer(Self.refusal(result, right))
    }
    return { [weak self] in
      guard let self, pending[number] != nil else { return }
      call("CancelCheckAuthorization", [.string("\(number)")]) { _ in }
    }
  }

  private func call(
    _ method: String, _ arguments: [DBusValue], then reply: @escaping @Loop @Sendable (Result<DBusMessage, DBusError>) -> Void
  ) {
    var request = DBusMessage.call(Self.name, "/org/freedesktop/PolicyKit1/Authority", "\(Self.name).Authority", method, arguments)
    request.startsService = true
    bus.call(request, milliseconds: Self.timeout, then: reply)
  }

  private static func refusal(_ result: Result<DBusMessage, DBusError>, _ right: Right) -> String? {
    let action = action(right)
    switch result {
    case .success(let message):
      guard case .structure(let members)? = message.body.first, members.count == 3, let isAuthorized = members[0].bool,
        let isChallenge = members[1].bool
      else { return "unexpected reply from polkit" }
      if isAuthorized { return nil }
      return isChallenge
        ? "polkit requires authentication for \(action), but no agent is running; use a session with an agent (pkttyagent)"
        : "polkit denied \(action): authentication failed or a rule in /etc/polkit-1/rules.d denies it"
    case .failure(.refused(let name, _)) where name == "org.freedesktop.DBus.Error.ServiceUnknown":
      return "polkit is not installed: apt install polkitd, or set authorization = \"lists\""
    case .failure(.timeout): return "polkit did not respond within 1 min"
    case .failure(let error): return "cannot query polkit: \(error.message)"
    }
  }
}

extension Peer {
  /// The start time of the process in clock ticks since boot; with 0 polkit looks it up.
  fileprivate var startTime: UInt64 {
    guard let stat = try? Files.contents(of: "/proc/\(pid)/stat", limit: 4096) else { return 0 }
    // The name is in parentheses and may contain anything; the start time is the 20th field after it (proc(5)).
    let fields = stat.suffix(from: stat.lastIndex(of: UInt8(ascii: ")")).map { $0 + 1 } ?? stat.endIndex).split(
      separator: UInt8(ascii: " "))
    return fields.count > 19 ? UInt64(String(decoding: fields[19], as: UTF8.self)) ?? 0 : 0
  }
}
