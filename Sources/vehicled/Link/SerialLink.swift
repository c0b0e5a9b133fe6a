// A serial port or pseudo-terminal: raw, exclusively ours, without flow control. Its end is the hang-up that the kernel
// reports when the cable is pulled.

import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols

@Loop final class SerialLink: Link {
  private weak var owner: (any LinkOwner)?
  private let channel: ChannelLink

  init(path: String, baud: Int, owner: any LinkOwner) {
    self.owner = owner
    let handler = ChannelLink(owner: owner, goneReason: "\(path) went away: was it unplugged?")
    channel = handler
    let descriptor: CInt
    do {
      descriptor = try Self.open(path, baud: baud)
    } catch {
      let reason = error.description
      Loop.post { [weak self] in self?.failed(reason) }
      return
    }
    NIOPipeBootstrap(group: Loop.group)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 2048))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try Loop.assumeIsolated { try channel.pipeline.syncOperations.addHandler(handler) }
        }
      }
      .takingOwnershipOfDescriptor(inputOutput: descriptor)
      .whenComplete { [weak self] result in
        // In a later turn: this may come before our owner knows us.
        Loop.post {
          if case .failure(let error) = result {
            _ = Glibc.close(descriptor)
            self?.failed("cannot use \(path): \(plainWords(error))")
          } else {
            handler.cameUp()
          }
        }
      }
  }

  private func failed(_ reason: String) {
    let owner = owner
    self.owner = nil
    owner?.linkWentDown(reason, final: false)
  }

  func send(_ bytes: [UInt8], id: SendID?) {
    channel.send(bytes, id: id)
  }

  func close() {
    owner = nil
    channel.close()
  }

  /// Opens and configures the port, or says what is wrong with it and how to mend it.
  private static func open(_ path: String, baud: Int) throws(ValueError) -> CInt {
    let descriptor = Glibc.open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else {
      switch errno {
      case ENOENT, ENXIO, ENODEV: throw ValueError("\(path) is not there: is the adapter plugged in?")
      case EACCES, EPERM: throw ValueError("no permission to open \(path): give it to the daemon's group")
      case EHOSTDOWN, EIO: throw ValueError("\(path) does not answer: the adapter may be asleep")
      default: throw ValueError("cannot open \(path): \(systemWords(errno))")
      }
    }
    let locked = clinux_serial_lock(descriptor)
    let configured = locked == 0 ? clinux_serial_raw(descriptor, UInt32(baud)) : 0
    guard locked == 0, configured == 0 else {
      _ = Glibc.close(descriptor)
      if locked == -EWOULDBLOCK { throw ValueError("another program has \(path) open: end it first") }
      if configured == -ENOTTY || locked == -ENOTTY { throw ValueError("\(path) is not a serial port") }
      throw ValueError("cannot set \(path) to \(baud) baud: \(systemWords(-(locked != 0 ? locked : configured)))")
    }
    _ = clinux_serial_low_latency(descriptor)
    tcflush(descriptor, TCIOFLUSH)
    return descriptor
  }
}
