// A connection to a camera, which returns the pictures of its stream. Buffers at most one incomplete picture.

import CLinux
import Glibc
import Protocols

final class VideoStream {
  private let url: VideoURL
  private let socket: Int32
  private var reader = MotionJPEG()
  private var frames: [[UInt8]] = []
  /// The error that ended the stream; thrown once the complete pictures before it have been returned.
  private var failure: Failure?
  private var chunk = [UInt8](repeating: 0, count: 65_536)

  /// Connects and sends the request.
  init(_ url: VideoURL, within seconds: Double) throws(Failure) {
    self.url = url
    let deadline = Clock.monotonic + seconds
    socket = try Self.connect(to: url, until: deadline)
    var rest = MotionJPEG.request(host: url.authority, path: url.path)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR, errno != EAGAIN || !Self.wait(for: socket, POLLOUT, until: deadline) {
        throw .other("\(url.authority) closed the connection: \(String(cString: strerror(errno)))")
      }
    }
  }

  deinit { close(socket) }

  /// Returns the next picture; nil after a timeout or a signal.
  func next(within seconds: Double) throws(Failure) -> [UInt8]? {
    let deadline = Clock.monotonic + seconds
    while true {
      if !frames.isEmpty { return frames.removeFirst() }
      if let failure { throw failure }
      let count = chunk.withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
      if count > 0 {
        for event in reader.read(Array(chunk[..<count])) {
          switch event {
          case .frame(let frame): frames.append(frame)
          case .failed(let message): failure = .other("\(url.authority): \(message)")
          }
        }
      } else if count == 0 {
        throw .other("\(url.authority) ended the stream; check that the video is on")
      } else if errno == EAGAIN {
        guard Self.wait(for: socket, POLLIN, until: deadline) else { return nil }
      } else if errno != EINTR {
        throw .other("lost the stream from \(url.authority): \(String(cString: strerror(errno)))")
      } else if Interrupt.received {
        return nil
      }
    }
  }

  /// Connects to the first address that accepts the connection.
  private static func connect(to url: VideoURL, until deadline: Double) throws(Failure) -> Int32 {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(url.host, url.port, &hints, &list)
    guard status == 0 else {
      throw .other("cannot resolve \"\(url.host)\": \(String(cString: gai_strerror(status))); check the URL of the stream")
    }
    defer { freeaddrinfo(list) }
    var error = EADDRNOTAVAIL
    var next = list
    while let address = next?.pointee {
      next = address.ai_next
      let kind = address.ai_socktype | Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
      let candidate = Glibc.socket(address.ai_family, kind, address.ai_protocol)
      guard candidate >= 0 else {
        error = errno
        continue
      }
      error = Glibc.connect(candidate, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno
      if error == EINPROGRESS {
        error = wait(for: candidate, POLLOUT, until: deadline) ? socketError(of: candidate) : Interrupt.received ? EINTR : ETIMEDOUT
      }
      if error == 0 { return candidate }
      close(candidate)
    }
    if error == EINTR { throw .other("interrupted") }
    throw .other("cannot connect to the camera at \(url.authority): \(String(cString: strerror(error))); check that the video is on")
  }

  private static func socketError(of socket: Int32) -> Int32 {
    var error: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno
  }

  /// Waits until the socket is ready; returns false at the deadline or after a signal.
  private static func wait(for socket: Int32, _ events: Int32, until deadline: Double) -> Bool {
    var entry = pollfd(fd: socket, events: Int16(events), revents: 0)
    return clinux_poll(&entry, 1, Int64(max(0, deadline - Clock.monotonic) * 1e9)) > 0
  }
}
