"""From HTTP to WebSocket; imported when the first socket is opened, for it would take a tenth of the server's start."""

from __future__ import annotations

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

CLOSE_SECS = 1.0
"""How long the end of the process waits for a client to answer that its socket is closed."""


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's own, but for the ways in which a socket ends."""

    def data_received(self, data: bytes) -> None:
        """Take what has come; who sends more headers than the parser takes is told so, and not left waiting."""
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_complete:
            # Made by websockets, as 431, and left unsent by uvicorn, which would fail for it at its end.
            self.handshake_complete = self.close_sent = True
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message; where no pong came and the socket was closed for it, the client counts as gone."""
        try:
            await super().send(message)
        except RuntimeError:
            if self.close_sent:
                raise ClientDisconnected from None
            raise

    def shutdown(self) -> None:
        """Stop at the end of the process, unless the application has the socket and closes it when it is done."""
        if self.close_sent or not self.handshake_complete:
            super().shutdown()
        self.close_timeout = CLOSE_SECS
