// What is wrong with a device, as views show it. Pure.

import Varlink

extension Contract.Device {
  /// The link that `problem` is about.
  private var mainLink: Contract.Link? { links.first { $0.name == "main" } ?? links.first }

  /// Whether a client has closed the links with `disconnect`, which is no problem.
  var isDisconnected: Bool { fault == nil && mainLink?.state == "down" && mainLink?.reason?.hasPrefix("disconnected on request") == true }

  /// The fault, or why the main link is not up; nil if all is well.
  var problem: String? {
    if let fault { return fault }
    guard let link = mainLink, link.state != "up" else { return nil }
    return link.reason.map { "link \(link.state): \($0)" } ?? "link \(link.state)"
  }

  /// The time until the next attempt to open a link: `; next attempt in 12 s`; empty if none is planned. `now` is in seconds since the Unix
  /// epoch.
  func nextAttempt(at now: Double) -> String {
    links.compactMap(\.nextAttempt).min().map { "; next attempt in \(Format.duration(Double($0) / 1e6 - now))" } ?? ""
  }
}
