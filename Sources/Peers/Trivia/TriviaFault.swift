// The faults of a simulated trivia server. With error, down, html, redirect and garbage, the request is not executed; the other faults
// change the reply.
// Source: common failures of HTTP and of servers behind a front end.

import Protocols

public typealias TriviaFault = Fault<TriviaFaultKind>

/// The faults of a trivia server. A fault with a start time affects all later clients.
public enum TriviaFaultKind: String, FaultKind {
  case error, down, html, redirect, garbage
  case lost, slow, drip, truncated, huge, strings, null, duplicate

  public static let countedItems = "replies"

  public var defaults: (trigger: FaultTrigger, duration: Nanoseconds?) { (.every(1), takesDuration ? 20 * .second : nil) }

  public var takesDuration: Bool { self == .slow }

  /// The description of the fault.
  public var help: String {
    switch self {
    case .error: "reply 500 without executing the request"
    case .down: "reply 503 with a web page, without executing the request"
    case .html: "reply 200 with the login page of a captive portal, without executing the request"
    case .redirect: "reply 302 to another host, without executing the request"
    case .garbage: "send a reply that is not HTTP, without executing the request"
    case .lost: "execute the request, then close the connection without a reply"
    case .slow: "execute the request, and delay the reply by MS"
    case .drip: "send the reply one byte every 100 ms"
    case .truncated: "close the connection after half of the reply"
    case .huge: "send a reply of 10 MB"
    case .strings: "send ids as strings"
    case .null: "send null for the texts of facts"
    case .duplicate: "send each fact of the history twice"
    }
  }
}
