// A serial port or pseudo-terminal in raw mode, locked, without flow control. When the adapter is unplugged, the kernel reports a
// hangup and the link goes down. The baud rate can be changed unless the URL sets it or the port has no baud rate (pseudo-terminals,
// RFCOMM).

import CLinux
import Glibc
import NIOCore
import NIOPosix
import Protocols
import ServiceRuntime

extension ChannelLink {
  static func serial(path: String, baud: Int?, owner: any LinkOwner) -> ChannelLink {
    let link = ChannelLink(owner: owner, closedReason: "\(path) disappeared: check that it is plugged in")
    let descriptor: CInt
    do {
      descriptor = try openPort(path, baud: baud ?? LinkURL.defaultBaud)
    } catch {
      let reason = error.description
      // In a later turn, because the owner has not stored this link yet.
      Loop.post { link.wentDown(reason) }
      return link
    }
    if baud == nil, clinux_serial_is_hardware(descriptor) == 1 { link.baud = LinkURL.defaultBaud }
    link.adopt(descriptor, named: path, readSize: 1024)
    return link
  }

  /// Takes ownership of an open descriptor, of which each read has at most `readSize` bytes, and comes up.
  func adopt(_ descriptor: CInt, named name: String, readSize: Int) {
    NIOPipeBootstrap(group: Loop.group)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: readSize))
      .channelInitializer { $0.add(self) }
      .takingOwnershipOfDescriptor(inputOutput: descriptor)
      .whenComplete { result in
        Loop.post {
          switch result {
          case .success: self.cameUp()
          case .failure(let error):
            _ = Glibc.close(descriptor)
            self.wentDown("cannot use \(name): \(errorMessage(error))")
          }
        }
      }
  }

  func setBaud(_ new: Int) {
    guard baud != nil, let descriptor else { return }
    // The driver chooses the nearest supported speed. An error means that the port is disappearing, which closes the channel anyway.
    _ = clinux_serial_raw(descriptor, UInt32(new))
    tcflush(descriptor, TCIOFLUSH)
    baud = new
  }

  /// Opens and configures the port. The error gives the cause and the remedy.
  private static func openPort(_ path: String, baud: Int) throws(ValueError) -> CInt {
    let descriptor = Glibc.open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else {
      switch errno {
      case ENOENT, ENXIO, ENODEV:
        let remedy = path.hasPrefix("/dev/rfcomm") ? "bind it with rfcomm, also after each boot" : "check that the adapter is plugged in"
        throw ValueError("\(path) does not exist: \(remedy)")
      case EACCES: throw ValueError("cannot open \(path): permission denied; add the daemon's user to the group of the port")
      case EPERM: throw ValueError("cannot open \(path): the service may not use this device; \(Sandbox.remedy(forDevice: path))")
      case EHOSTDOWN, EIO: throw ValueError("\(path) does not respond: the adapter may be asleep")
      default: throw ValueError("cannot open \(path): \(errnoMessage(errno))")
      }
    }
    let locked = clinux_serial_lock(descriptor)
    let configured = locked == 0 ? clinux_serial_raw(descriptor, UInt32(baud)) : 0
    guard locked == 0, configured == 0 else {
      _ = Glibc.close(descriptor)
      if locked == -EWOULDBLOCK { throw ValueError("\(path) is in use by another program: stop it first") }
      if configured == -ENOTTY || locked == -ENOTTY { throw ValueError("\(path) is not a serial port") }
      throw ValueError("cannot set \(path) to \(baud) baud: \(errnoMessage(-(locked != 0 ? locked : configured)))")
    }
    _ = clinux_serial_low_latency(descriptor)
    tcflush(descriptor, TCIOFLUSH)
    return descriptor
  }
}
