// What can be wrong with a simulated trivia server. The first five happen instead of what was asked, the rest after it was done.
// Facts: triviatoy.md §B (HTML of a front end, ids as strings), §F; the rest is what networks do to HTTP.

import Protocols

public typealias TriviaFault = Fault<TriviaFaultKind>

/// The faults of a trivia server. One that strikes from a moment on goes on striking: each client is a new one to it.
public enum TriviaFaultKind: String, FaultKind {
  case error, down, html, redirect, garbage
  case lost, slow, drip, truncated, huge, strings, null, duplicate

  public static let countedItems = "answers"

  public var usual: (moment: FaultMoment, time: Nanoseconds?) { (.every(1), takesTime ? 20 * .second : nil) }

  public var takesTime: Bool { self == .slow }

  /// What it does.
  public var help: String {
    switch self {
    case .error: "500, and nothing is done"
    case .down: "503, with a web page, and nothing is done"
    case .html: "200, with a network's login page, and nothing is done"
    case .redirect: "302, to another host, and nothing is done"
    case .garbage: "what comes is no HTTP, and nothing is done"
    case .lost: "what was asked is done, then the connection is gone without an answer"
    case .slow: "what was asked is done at once, and the answer takes MS"
    case .drip: "the answer comes a byte each 100 ms"
    case .truncated: "half of the answer, then the connection is gone"
    case .huge: "an answer of 10 MB"
    case .strings: "ids come as strings"
    case .null: "the facts' texts are null"
    case .duplicate: "each fact of the history comes twice"
    }
  }
}
