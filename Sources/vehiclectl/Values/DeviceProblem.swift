// What is wrong with a device, as views show it. No I/O.

import Varlink

extension Contract.Device {
  /// The link that `problem` is about.
  private var mainLink: Contract.Link? { links.first { $0.name == "main" } ?? links.first }

  /// Whether a client has closed the links with `disconnect`, which is not a problem.
  var isDisconnected: Bool { fault == nil && mainLink?.state == "down" && mainLink?.reason?.hasPrefix("disconnected on request") == true }

  /// Whether polling is paused because the vehicle is not in use. This is not a problem, unless the battery is low.
  var isNotInUse: Bool {
    Self.isNotInUse(state: state, fault: fault) && mainLink.map { $0.state == "up" } ?? true
  }

  /// The fault, or why the main link is not up; nil if all is well.
  var problem: String? {
    if let fault { return fault }
    guard let link = mainLink, link.state != "up" else { return nil }
    return link.reason.map { "link \(link.state): \($0)" } ?? "link \(link.state)"
  }

  /// The problem without the state of the link, for narrow columns.
  var shortProblem: String? { fault ?? (problem == nil ? nil : mainLink?.reason ?? problem) }

  /// Whether the problem is one that the user should look at.
  var needsAttention: Bool { problem != nil && !isDisconnected && !isNotInUse }

  /// Whether `problem` already gives this reason for a missing value, so that it need not be repeated for each.
  func explains(_ reason: String?) -> Bool {
    guard let reason, !reason.isEmpty else { return true }
    return reason == fault || reason == problem || problem != nil && reason.hasPrefix(Self.linkDown)
  }

  /// How the daemon's message about a lost link begins.
  private static let linkDown = "link down"

  /// The time until the next attempt to open a link: `; next attempt in 12 s`; empty if none is planned. `now` is in seconds since the Unix
  /// epoch.
  func nextAttempt(at now: Double) -> String {
    links.compactMap(\.nextAttempt).min().map { "; next attempt in \(Format.duration(Double($0) / 1e6 - now))" } ?? ""
  }
}
